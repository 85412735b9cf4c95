"""Settings of a role, each of which would break a session that does not set it for itself."""

from __future__ import annotations

from typing import Final

SETTINGS: Final = {
    "statement_timeout": "'200ms'", "lock_timeout": "'1ms'", "idle_session_timeout": "'2s'",
    "idle_in_transaction_session_timeout": "'20ms'", "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on", "synchronous_commit": "off", "standard_conforming_strings": "off",
    "client_encoding": "latin1", "bytea_output": "escape", "array_nulls": "off", "transform_null_equals": "on",
    "enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_nestloop": "off", "plan_cache_mode": "auto",
    "quote_all_identifiers": "on", "client_min_messages": "debug1", "search_path": "public", "row_security": "off",
    "datestyle": "'SQL, DMY'", "intervalstyle": "postgres_verbose", "timezone": "'Asia/Kathmandu'",
    "extra_float_digits": "'-10'", "check_function_bodies": "off", "work_mem": "'64kB'", "jit": "on",
}  # fmt: skip
"""As ALTER ROLE ... SET takes them."""
