"""The tests whose subject is a store in a directory; on a server these do not run (`on_server.py`).

A test is left out by its name, or because its code, its helpers or its fixtures use something of directories.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType

import pytest

_AT_POINT = "test_a_process_killed_at_a_fault_point_loses_and_halves_nothing"
_OF_CREATION = "in the creation of a directory; on a server that is one transaction"
_BOOT = "restarts the machine of the client, which is no restart of a server"
_COPIES = "takes a backup or a copy of a directory"
_COUNTS = "expects each event to be counted at once; a server is sent the counts of a quarter of a second"
_FILES = "moves, copies, damages or compares files"
_GATE = "takes the gate of a directory by its file, or replaces a method of that gate"
_DISK = "fills the disk of the store, which is the server's"
_LOCK_FILE = "locks or reads the file of locks"
_OWN = "has servers of its own"
_TABLES = "expects the figures of one file, its databases, locks and readers"
_READS = "removes or damages the file of reads"

NAMES = {
    "tests/processes/postgres/": _OWN,
    "tests/processes/test_backups_in_place.py": _COPIES,
    "tests/processes/test_compact_to.py": _COPIES,
    "tests/processes/test_copies.py": _COPIES,
    "tests/processes/test_creation.py": "makes directories; see storage/disk/postgres/test_create.py",
    **{
        f"tests/processes/test_crash_sweep.py::{_AT_POINT}[{point}]": f"kills at a fault point {where}"
        for point, where in (
            ("store.create.before_format", _OF_CREATION),
            ("store.create.before_rename", _OF_CREATION),
            ("store.create.after_rename", _OF_CREATION),
            ("read_cache.half_changed", "in the file of reads"),
        )
    },
    "tests/processes/test_damage.py": _FILES,
    "tests/processes/test_durability.py": "lets the system calls of LMDB fail; see processes/postgres/test_durability.py",
    "tests/processes/test_full_disk.py": _DISK,
    "tests/processes/test_forks.py::test_a_child_forked_beside_a_long_view_is_told_why_the_store_stays_closed": (
        "expects a child that cannot open LMDB anew"
    ),
    "tests/processes/test_gate_queue.py": "looks at the queue of a directory; a server has its own",
    "tests/processes/test_gone.py": "moves directories; see processes/postgres/test_moved_stores.py",
    "tests/processes/test_lacking_environment.py": "reads a directory from namespaces that reach no server",
    "tests/processes/test_lost_records.py": "copies a directory for each record that it damages",
    "tests/processes/test_map_growth.py": "is about the memory map of LMDB",
    "tests/processes/test_read_cache.py": _READS,
    "tests/processes/test_readers.py": "is about the reader table of LMDB",
    "tests/processes/test_received_marks.py::test_a_mark_that_is_lost_makes_a_count_short_by_one_window": _FILES,
    "tests/processes/test_refused_read_cache.py": _READS,
    "tests/processes/test_owners.py::test_an_owner_of_another_boot_is_dead": _BOOT,
    "tests/processes/test_producer_sessions.py::TestDeath::test_another_boot": _BOOT,
    "tests/processes/test_reserve.py": _DISK,
    "tests/processes/test_small_disk.py": _DISK,
    "tests/processes/test_store_copy.py": _OWN,
    "tests/processes/test_store_directory.py": "is about directories and files that are refused",
    "tests/processes/test_store_lock.py": _LOCK_FILE,
    "tests/processes/test_too_many_files.py::test_too_many_open_files_are_named_as_the_cause[compact]": "compacts a file",
    "tests/processes/test_upgrade.py": "upgrades a directory; a store on a server has the present format from the beginning",
    "tests/processes/test_waiting.py::test_who_waits_keeps_no_old_view_open": _TABLES,
    "tests/storage/test_missing_records.py::test_a_change_without_the_superblock_is_refused_as_damage": (
        "takes a record away by a transaction of LMDB"
    ),
    "tests/storage/disk/lmdb/": "the engine of directories itself",
    "tests/storage/admin/test_topics.py::TestDeletion::test_nothing_of_it_is_left": "counts records of databases",
    "tests/storage/client/test_final_version.py::test_after_loss_of_the_read_cache_the_newest_version_is_ahead_of_the_clock": _READS,
    "tests/storage/client/test_final_version.py::test_open_transactions_are_waited_for_without_a_read_cache": _READS,
    "tests/storage/client/test_same_store.py::TestTransactions::test_a_former_store_at_the_path_is_a_different_one": _FILES,
    "tests/storage/client/test_table_reader.py::test_reading_leaves_every_byte_as_it_was": _FILES,
    "tests/storage/client/test_transaction.py::TestWith::test_an_interrupt_is_raised_although_the_store_is_too_busy_to_abort": _GATE,
    "tests/storage/client/work/test_attached.py::test_a_put_that_finds_no_room_and_is_refused_is_not_kept": _DISK,
    "tests/storage/client/work/test_beginning.py::test_a_begin_after_the_file_of_reads_was_removed_may_write": _READS,
    "tests/storage/client/work/test_beginning.py::test_a_begin_before_the_file_of_reads_was_removed_may_not_write": _READS,
    "tests/storage/client/work/test_beginning.py::test_a_begin_behind_an_own_commit_reads_no_record": "counts calls of LMDB",
    "tests/storage/client/work/test_flush_part.py::TestFlushPart::test_an_interrupt_is_resolved_while_another_thread_writes": _GATE,
    "tests/storage/client/work/test_serializable.py::TestReadCache::test_a_write_under_forgotten_reads_is_told_that_its_key_may_have_been_read": _READS,
    "tests/storage/client/work/test_serializable.py::TestReadCache::test_ranges_forgotten_by_the_file_alone_refuse_older_writes": _READS,
    "tests/storage/client/work/test_serializable.py::TestReadCache::test_a_damaged_file_is_made_anew_behind_a_watermark": _READS,
    "tests/storage/client/work/test_serializable.py::TestReadCache::test_a_reader_that_meets_damage_reads_on": _READS,
    "tests/storage/client/work/test_serializable.py::TestReadCache::test_a_lost_file_of_reads_refuses_every_older_write": _READS,
    "tests/storage/client/work/test_serializable.py::TestReadCache::test_a_reboot_forgets_reads_and_refuses_every_older_write": _READS,
    "tests/storage/subscription/test_subscription_expiry.py::test_a_restored_store_starts_anew": _COPIES,
    "tests/storage/topic/producers/test_lost_sessions.py::TestTokens::test_of_another_store": _COPIES,
    "tests/storage/topic/producers/test_ownership.py::TestRestore": _COPIES,
    "tests/storage/topic/producers/test_lost_sessions.py::TestLeaving::test_a_full_disk_grants_nothing": _DISK,
    "tests/storage/topic/producers/test_session_resume.py::TestResume::test_after_a_reboot": _BOOT,
    "tests/storage/table/test_conditions.py::test_what_comes_to_nothing_leaves_no_transaction_behind": _READS,
    "tests/storage/table/test_deleted_keys.py::test_ever_new_keys_leave_nothing": "compares sizes of the file",
    "tests/storage/txn/test_coordinator.py::TestDeadline::test_what_remains_starts_anew_after_a_reboot": _BOOT,
    "tests/storage/verify/test_reads.py::test_a_read_that_changes_the_file_is_found": _FILES,
    "tests/storage/maintenance/test_backup.py": _COPIES,
    "tests/storage/maintenance/test_compact.py": _COPIES,
    "tests/storage/maintenance/test_restore.py": _COPIES,
    "tests/storage/maintenance/test_store_copy.py": _OWN,
    "tests/storage/maintenance/test_synced_copies.py": _COPIES,
    "tests/storage/reports/test_activity.py::test_counters_are_those_of_the_store": _COUNTS,
    "tests/storage/reports/test_sizes.py::test_the_walk_has_a_bound": _TABLES,
    "tests/storage/reports/test_store_info.py::test_a_lease_is_listed_as_long_as_it_is_held": _TABLES,
    "tests/storage/reports/test_store_info.py::test_a_store_that_was_moved_away_is_not_found": _FILES,
    "tests/storage/reports/test_store_info.py::test_a_view_is_a_reader": _TABLES,
    "tests/storage/reports/test_store_info.py::test_every_database_is_listed_with_its_space": _TABLES,
    "tests/storage/reports/test_store_info.py::test_facts_are_counted": _TABLES,
    "tests/storage/reports/test_store_info.py::test_what_was_removed_is_free_inside_the_file_and_not_in_use": _TABLES,
    "tests/storage/reports/test_store_report.py::TestReport::test_a_store_opened_for_reading_is_left_as_it_is": _FILES,
    "tests/storage/disk/postgres/": "the engine of servers itself, which has servers of its own",
    "tests/storage/disk/test_kept_records.py::test_counts_are_kept_until_the_database_changes": "counts calls of LMDB",
    "tests/storage/disk/test_stores.py::test_a_directory_is_resolved_to_its_real_path": "names directories",
    "tests/storage/maintenance/test_gc.py::test_an_empty_build_directory_in_a_store_is_removed": _FILES,
    "tests/storage/maintenance/test_gc.py::test_leftovers_of_dead_builders_are_removed": _FILES,
    "tests/storage/maintenance/test_table_gc.py::test_a_deleted_table_goes_in_steps": _TABLES,
    "tests/storage/test_store.py::TestDurability::test_a_replicated_directory_is_refused": _FILES,
    "tests/storage/topic/producers/test_lost_sessions.py::TestLeaving::test_a_place_is_given_back_when_the_gate_is_free_again": _GATE,
    "tests/storage/test_buffered_sends.py::TestWatch::test_who_waits_for_the_writer_gate_is_named": _GATE,
}
"""Folders (with a slash at the end), files, classes or tests, with reasons."""

USES = {
    "lmdb": "looks at LMDB",
    "storage.disk.lmdb": "looks into the engine of directories",
    "storage.process.byte_locks": "locks bytes of files",
    "tests.storage.lmdb_operations": "counts calls of LMDB",
    "tests.storage.subscription.crowd": "counts looks at leases in the file of locks",
}
"""Modules, with their parts, and the reason of each."""


def reason_for(item: pytest.Item) -> str | None:
    """The reason for which a test needs a directory; None if the test runs on a server too."""
    for name, reason in NAMES.items():
        if item.nodeid == name or item.nodeid.startswith(
            name if name.endswith("/") else (f"{name}::", f"{name}[")
        ):
            return reason
    for module in set(_modules_of(item)):
        for used, reason in USES.items():
            if module == used or module.startswith(f"{used}."):
                return reason
    return None


def _modules_of(item: pytest.Item) -> Iterator[str]:
    """The modules of all that the test, its fixtures and their helpers mention by a global name."""
    if not isinstance(item, pytest.Function):
        return
    waiting: list[object] = [item.function]
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        waiting += [definition.func for definition in definitions]
    seen: set[int] = set()
    while waiting:
        used = waiting.pop()
        if id(used) in seen:
            continue
        seen.add(id(used))
        if isinstance(used, ModuleType):
            yield used.__name__
            continue
        module = getattr(used, "__module__", None) or ""
        yield module
        if module.startswith("tests."):
            waiting += _mentioned(used)


def _mentioned(used: object) -> Iterator[object]:
    """The values of the global names in the code of a function, or of the methods of a class."""
    if isinstance(used, type):
        yield from (value for value in vars(used).values() if isinstance(value, FunctionType))
    function = inspect.unwrap(used) if callable(used) else used
    function = getattr(function, "__func__", function)
    if isinstance(function, FunctionType):
        for name in _names(function.__code__):
            if name in function.__globals__:
                yield function.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
