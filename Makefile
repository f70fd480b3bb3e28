# Both commands create .venv if needed. The scripts also work without make.

.PHONY: run test

run:
	sh scripts/run.sh

test:
	sh scripts/test.sh
