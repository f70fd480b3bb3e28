"""Which law: candidates fitted to some records and judged on others, by several criteria."""
