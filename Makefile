# Each command creates .venv if needed. The scripts also work without make.

.PHONY: run verify test

run:
	sh scripts/run.sh

verify:
	sh scripts/verify.sh

test:
	sh scripts/test.sh
