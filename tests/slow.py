"""Tests that take seconds while a faster one holds the same promise each time: only `make check-all` runs them.

A line is the beginning of a test's id behind `tests/`; parameters may be named. What stands here is as `exhaustive` as
if it were marked so at its place: that a list of all of them can be read, and weighed, at once, is worth more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

SLOW = (
    # Airflow: a stream that ends with the scheduler, which is the most that can end, and is begun again.
    "dags/test_stack.py::test_a_stream_ends_with_the_process_of_its_task_and_is_tried_again",
    "dags/test_stack.py::test_a_stream_ends_when_its_task_is_cleared_and_begins_again",
    "dags/test_stack.py::test_a_second_driver_is_refused",
    # A team's own Airflow: which DAGs, errors and checkouts a commit has is asked each time, without its parts.
    "dags/test_repository.py::test_a_day_goes_from_a_click_to_rows_and_the_next_by_the_newest_commit",
    # Settings that Airflow keeps: what a task hands to its command is asked each time.
    "dags/test_stack.py::test_pages_and_tasks_go_by_the_home_that_airflow_keeps",
    # A week under kills, in an Airflow of its own: what is judged is held to plain cases each time.
    "dags/test_drill_airflow.py::test_a_week_is_the_same_whatever_is_killed",
    # A database of its own: as another user, and its data at the next start.
    "dags/test_database.py::test_a_user_serves_themselves_and_not_even_root_gets_in[True]",
    "dags/test_database.py::test_nothing_is_left_in_the_systems_temporary_folder",
    "dags/test_database.py::test_a_strangers_process_in_an_old_file_is_let_alone",
    # A cluster: the same bytes though a worker dies, and nobody who takes a task.
    "laws/test_cluster.py::test_a_worker_that_does_not_see_the_home_is_told_and_others_do_its_work",
    # A signal while rows come.
    "laws/test_ended_services.py::test_a_signal_to_all_processes_stops_a_stream_cleanly_and_it_goes_on[Spark starts]",
    # Kills: at intent, in tasks, at written, published and while tables follow.
    "laws/test_kills.py::test_killed_and_run_again[looked]",
    "laws/test_kills.py::test_killed_and_run_again[listed]",
    "laws/test_kills.py::test_killed_and_run_again[settled]",
    "laws/test_stream_kills.py::test_killed_and_started_again[looked]",
    "laws/test_stream_kills.py::test_killed_and_started_again[folded]",
    "laws/test_stream_kills.py::test_killed_and_started_again[done]",
    "laws/test_regions_kills.py::test_killed_in_legs_and_started_again[waiting]",
    "laws/test_regions_kills.py::test_a_torn_ticket_is_made_from_the_log[{}]",
    "laws/test_regions_kills.py::test_a_torn_ticket_is_made_from_the_log[[]]",
    "laws/test_regions_kills.py::test_a_torn_ticket_is_made_from_the_log[null]",
    "laws/test_two_streams.py::test_a_stream_that_was_stopped_and_overtaken_ends_with_its_sentence[looked]",
    "laws/test_two_streams.py::test_a_stream_that_was_stopped_and_overtaken_ends_with_its_sentence[settling]",
    "laws/test_stores.py::test_upkeep_changes_no_row_in_a_store",
    # Spark beside core: one interval in sixteen buckets and three in seven, transcripts, drawn flows live.
    "laws/test_cuts.py::test_spark_gives_what_core_gives[spans1-16]",
    "laws/test_cuts.py::test_how_far_a_task_reads_ahead_does_not_matter[1]",
    "laws/test_cuts.py::test_how_many_tasks_an_epoch_is_cut_into_does_not_matter",
    "laws/test_transcripts_on_streams.py::test_transcripts_hold_as_a_query_on_spark[merge]",
    "laws/test_transcripts_on_streams.py::test_transcripts_hold_as_a_query_on_spark[join]",
    "laws/test_transcripts_on_streams.py::test_transcripts_hold_through_a_kill[window-2]",
    "laws/test_transcripts_on_streams.py::test_transcripts_hold_through_a_kill[merge-1]",
    "laws/test_transcripts_on_streams.py::test_transcripts_hold_through_a_kill[union-0]",
    "laws/test_transcripts_on_streams.py::test_transcripts_hold_through_a_kill[metronome-1]",
    "laws/test_auto_buckets.py::test_a_stream_chooses_and_keeps_its_number_too",
    "laws/test_watermark_differs.py",
    "laws/test_backlog.py::test_a_backlog_diverts_nothing_that_was_on_time[with timers]",
    "laws/test_backlog.py::test_a_backlog_diverts_nothing_that_was_on_time[in a merge]",
    "laws/test_faulty_buffers.py::test_a_disk_that_dies_is_one_buffers_quarantine[ENOTCONN-b]",
    "engine/tasks/test_deduplicating.py::test_spark_gives_the_same_as_a_batch_and_as_a_stream",
    "engine/tasks/test_deduplicating.py::test_epochs_do_not_matter_nor_does_who_drives_them[Restart.EVERY_EPOCH]",
    "engine/tasks/test_sides_apart.py::test_epochs_over_one_sides_rows_and_then_the_others_give_what_one_cut_gives",
    "engine/tasks/test_spacing.py::test_a_silence_five_times_as_long_needs_no_more_memory",
    "jobs/commands/test_metronome.py::test_spark_gives_the_same_as_a_batch_and_as_a_stream",
    "jobs/runs/test_buffered.py::test_on_spark_a_loss_is_accepted_told_in_the_ledger_and_the_stream_goes_on",
    "jobs/runs/test_history.py::test_cuts_do_not_matter_to_history[history-8]",
    "jobs/runs/test_lineage.py::test_a_stream_is_told",
    "jobs/commands/test_live_sources.py::test_no_row_arrives_before_it_was_sent_whenever_its_reading_was_planned",
    "jobs/commands/test_live_sources.py::test_a_socket_live_on_spark_goes_on_after_a_stop",
    "jobs/commands/test_stream.py::test_a_lost_checkpoint_is_made_anew",
    "jobs/proofs/test_live_region.py::test_drawn_items_and_faults_leave_the_same_as_on_the_core",
    "jobs/proofs/test_live_region.py::test_transcript[all three lost is told with what is gone]",
    "jobs/commands/test_conform.py::test_each_case_is_a_key_so_that_neighbours_change_nothing",
    "jobs/commands/test_conform.py::test_our_own_cases_hold[batch]",
    "jobs/commands/test_drains.py::test_where_the_buffers_are_full_it_publishes_without_a_punctuation",
    "jobs/commands/test_drains.py::test_by_period_it_publishes_when_a_reading_lies_a_period_behind_the_last_state",
    # The judge on Spark: what is planted in shuffled rows, in a flow's own checks and in a written commit.
    "expectations/test_own_checks.py::test_each_fails_on_its_own_odd_value[spark]",
    "expectations/test_exact_values.py::test_what_breaks_is_told_and_nothing_else[spark]",
    "expectations/test_borders.py::test_a_row_that_is_there_twice_is_found_across_partitions[in_partitions]",
    "jobs/commands/test_own_checks.py::test_values_in_stream_order_are_held_across_the_border_of_intervals[spark]",
    "jobs/commands/test_check.py::test_rows_of_some_commits_are_found_in_a_segment[spark]",
    "jobs/commands/test_check.py::test_a_span_without_a_promise_of_its_own_is_held_to_the_newest_one_before[spark]",
    "jobs/commands/test_check.py::test_a_folder_that_looks_like_a_pattern[spark]",
    # Tables that follow: some seeds; intervals together: a few places of the kill and of the day that runs again.
    "engine/commits/test_settling.py::test_every_reader_finds_what_is_settled_and_nothing_else[4-7]",
    "engine/commits/test_settling.py::test_every_reader_finds_what_is_settled_and_nothing_else[4-0]",
    "engine/commits/test_settling.py::test_every_reader_finds_what_is_settled_and_nothing_else[3-0]",
    "engine/commits/test_settling.py::test_every_reader_finds_what_is_settled_and_nothing_else[2-7]",
    "engine/commits/test_settling.py::test_a_log_that_is_made_anew_has_the_same_rows[12-7]",
    "jobs/runs/test_at_once.py::test_some_are_run_again_one_by_one_where_each_bucket_has_a_file[places1]",
    "jobs/runs/test_at_once.py::test_one_of_them_can_be_run_again_alone[8]",
    "jobs/runs/test_at_once.py::test_every_commit_says_what_it_says_when_it_runs_alone[2]",
    "jobs/runs/test_at_once.py::test_every_commit_says_what_it_says_when_it_runs_alone[4]",
    "jobs/runs/test_at_once.py::test_killed_while_tables_follow_they_follow_later[0]",
    "jobs/runs/test_at_once.py::test_killed_while_tables_follow_they_follow_later[3]",
    "jobs/runs/test_at_once.py::test_what_is_refused_is_a_commit_of_its_own_and_what_came_before_is_published[8]",
    # Planted bugs that many draws show: each rule keeps one that is caught quickly.
    "laws/test_planted_order.py::test_a_planted_bug_is_caught_by_its_law[a held row keeps its own turn]",
    "laws/test_planted_order.py::test_a_planted_bug_is_caught_by_its_law[branches as the interleave lists them]",
    "laws/test_planted_order.py::test_a_planted_bug_is_caught_by_its_law[other sources always come last]",
    "laws/test_planted_order.py::test_a_planted_bug_is_caught_by_its_law[rows of earlier spans cross once more]",
    "laws/test_planted_order.py::test_a_planted_bug_is_caught_by_its_law[every key is taken to come by one instance]",
    # The drill itself: each part keeps the bug that it finds soonest.
    "jobs/drill/test_drill_live.py::test_a_planted_bug_is_found[a start goes on from before the last sequence]",
    "jobs/drill/test_drill_live.py::test_a_planted_bug_is_found[a planned reading lands what came after it]",
    "jobs/drill/test_drill_errno.py::test_a_planted_bug_is_found[tables are said to follow that could not]",
    "jobs/drill/test_drill_neighbours.py::test_a_planted_bug_is_found[a table follows in two transactions]",
    "jobs/drill/test_drill_neighbours.py::test_a_planted_bug_is_found[what others wrote is not looked for]",
    "jobs/drill/test_drill_clock.py::test_a_planted_bug_is_found[a clock that leaps is believed]",
    # A disk that keeps everything, which asks less than one that keeps only what was synced.
    "jobs/drill/test_drill_power.py::test_a_disk_that_keeps_everything_by_itself_loses_nothing",
    # Live on Spark and started again: a socket, a recorded feed and a lost checkpoint are asked each time.
    "jobs/commands/test_live_sources.py::test_a_folder_is_caught_up_when_what_lay_in_it_is_published_however_often_it_starts",
    "jobs/commands/test_reset.py::test_a_checkpoint_of_before_a_reset_is_made_anew",
    "jobs/commands/test_stream.py::test_a_checkpoint_that_plans_other_spans_than_the_pending_commit_keeps_the_rest",
    "jobs/commands/test_drains.py::test_a_punctuation_that_is_replayed_does_not_drain_again",
    "jobs/commands/test_drains.py::test_a_stream_has_caught_up_where_the_region_waits_for_more",
    "jobs/proofs/test_live_region.py::test_transcript[a drain makes a restarted buffer count again]",
    # The same planted rows without Java, and other ones on Spark, are asked each time.
    "jobs/commands/test_own_checks.py::test_exactly_the_rows_that_break_a_check_are_found[spark]",
    "jobs/commands/test_check.py::test_violations_planted_in_a_written_commit_and_at_its_beginning[spark]",
    "jobs/runs/test_at_once.py::test_all_of_them_may_replace_what_ran_alone_and_the_other_way_round",
    # A cluster that takes no task: a minute of waiting; a home in a store: its laws are asked on drawn flows.
    "laws/test_cluster.py::test_nobody_takes_a_task",
    "end_to_end/test_home_in_a_store.py::test_days_on_core_are_those_of_a_folder",
    # Wherever epochs of legs end: one of three draws, and drawn regions, are asked each time.
    "jobs/commands/test_legs_replayed.py::test_wherever_epochs_of_legs_end_every_part_is_the_same[1]",
    "jobs/commands/test_legs_replayed.py::test_wherever_epochs_of_legs_end_every_part_is_the_same[2]",
    # A recorded feed played live on Spark and stopped: the demo plays one, Airflow's stream is stopped and goes on.
    "jobs/commands/test_stream.py::test_spark_plays_a_recorded_feed_live_and_goes_on_after_a_stop",
    # A store that does not answer at all: one without the bucket is told by the same words.
    "jobs/commands/test_store_secrets.py::test_what_opens_a_store_is_in_no_refusal[{'AWS_ENDPOINT_URL'",
    "jobs/commands/test_own_checks.py::test_rows_are_counted_interval_by_interval[spark]",
    "jobs/commands/test_judged_alike.py::test_spark_finds_what_this_process_finds",
    "jobs/commands/test_judged_alike.py::test_epochs_and_intervals_are_judged_as_the_whole_is[intervals]",
    "jobs/commands/test_own_checks.py::test_what_is_set_aside_is_asked_for_itself[spark]",
    "jobs/runs/test_at_once.py::test_one_of_them_can_be_run_again_alone[0]",
    # What benches measure.
    "jobs/bench/test_bench_small.py::test_spark_sorts_the_same_files",
    "jobs/bench/test_bench_small.py::test_silent_keys_are_listened_to",
    "jobs/bench/test_bench_store.py::test_a_commit_asks_little_of_a_store",
    "jobs/bench/test_bench_scale.py::test_memory_is_that_of_the_landing",
    "jobs/bench/test_bench_scale.py::test_calls_of_a_commit_are_counted_and_those_that_wait_for_one_another",
)


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark those of collected tests that stand in the list."""
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(SLOW):
            item.add_marker(pytest.mark.exhaustive)
