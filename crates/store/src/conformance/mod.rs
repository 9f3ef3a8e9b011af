//! What every store must do, as tests: every guarantee of [`crate::TaskStore`] and
//! [`crate::KeyStore`]. A store runs them with one line, [`crate::conformance_suite!`]. Cases
//! that need two stores at once, or are about one implementation, are not here.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "these are tests"
)]

pub mod fixtures;
pub mod keys;
pub mod leases;
pub mod model;
pub mod owner;
pub mod quota;
pub mod reading;
pub mod references;
pub mod releases;
pub mod restart;
pub mod submit;
pub mod sweep;
pub mod turns;

use async_trait::async_trait;

use crate::Stores;

/// Makes the stores that the cases run against.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Opens the store of this name: empty the first time, and later as it was left. The
    /// earlier handles of the name are dropped before.
    async fn open(&self, name: &str) -> Stores;
}

/// One test per guarantee, against the [`Harness`] that the expression makes for each. The
/// caller needs `tokio` with `macros` and `rt-multi-thread`.
#[macro_export]
macro_rules! conformance_suite {
    ($harness:expr) => {
        $crate::conformance_suite! { @cases $harness;
            submit: a_submitted_task_is_read_back_whole,
            submit: unknown_and_foreign_ids_are_alike,
            submit: sixty_four_concurrent_twins_make_one_task,
            submit: an_idempotency_key_belongs_to_one_request_and_one_project,
            submit: a_twin_is_found_while_its_key_is_bound,
            submit: an_idempotency_key_is_free_after_its_time,
            submit: the_queue_is_bounded_at_its_limit,
            submit: a_promised_place_is_kept_for_its_project,
            submit: a_full_project_is_told_when_its_tasks_end,
            submit: a_project_is_bounded_at_its_limit,
            submit: a_full_queue_still_replays,
            submit: a_duplicate_id_fails_alone,
            leases: a_claim_marks_the_task_and_counts_the_attempt,
            leases: tokens_grow_with_every_claim,
            leases: only_served_models_are_claimed,
            leases: a_thousand_tasks_do_not_starve_one,
            leases: projects_take_turns_when_nothing_runs,
            turns: turns_are_weighted_by_cost,
            turns: a_project_leaves_a_slot_where_others_wait,
            turns: a_bound_on_a_project_s_slots_holds_also_when_it_is_alone,
            turns: a_task_that_is_given_back_has_had_its_turn,
            leases: within_a_project_the_oldest_is_first,
            leases: no_task_is_claimed_twice_by_concurrent_workers,
            leases: progress_never_falls_and_a_renewal_never_completes,
            leases: a_stale_token_changes_nothing,
            releases: what_an_attempt_keeps_is_given_to_later_ones_until_the_end,
            releases: what_was_kept_of_a_task_without_a_result_is_abandoned,
            releases: a_preview_is_shown_while_its_lease_lasts,
            releases: warnings_stay_with_their_task,
            leases: a_finished_task_stays_as_it_is,
            releases: a_release_gives_back_the_old_place_and_the_attempt,
            releases: a_release_may_count_the_attempt,
            leases: workers_hear_of_new_work_and_of_withdrawn_work,
            owner: a_cancel_is_final_and_withdraws_the_lease,
            owner: of_a_cancel_and_a_finish_exactly_one_wins,
            owner: a_delete_removes_task_key_and_lease,
            owner: deleted_files_are_remembered_until_they_are_forgotten,
            owner: another_project_can_neither_cancel_nor_delete,
            reading: pages_join_to_the_whole_list_in_both_orders,
            reading: a_page_of_much_text_ends_early,
            reading: a_deleted_cursor_still_has_its_place,
            reading: expired_tasks_are_not_listed,
            turns: queue_positions_foretell_the_starts,
            references: a_task_is_claimed_only_when_its_references_are_at_hand,
            references: references_are_fetched_by_projects_in_turn,
            references: a_fetch_is_leased_and_settled_once,
            references: a_fetch_given_back_is_taken_again_after_its_pause,
            references: what_is_at_hand_is_not_fetched_again_after_a_restart,
            references: lost_references_are_fetched_again,
            references: references_are_swept_when_their_task_has_ended,
            references: what_is_decided_of_a_spec_is_kept,
            sweep: an_expired_lease_goes_back_to_its_old_place,
            sweep: the_last_attempt_fails_with_worker_lost,
            sweep: a_lease_of_a_wrong_clock_counts_as_expired,
            sweep: results_expire_then_vanish,
            sweep: files_of_attempts_that_came_to_nothing_are_swept,
            sweep: a_sweep_is_bounded_by_its_batch,
            quota: what_a_task_takes_is_counted_until_it_is_gone,
            quota: what_a_project_stores_is_bounded,
            quota: a_task_that_waits_too_long_expires,
            quota: a_sweep_may_spare_the_leases,
            quota: an_ended_task_keeps_no_inputs,
            restart: everything_acknowledged_is_there_after_a_restart,
            restart: tokens_go_on_growing_after_a_restart,
            restart: an_idempotency_key_outlives_a_restart,
            restart: a_store_stays_who_it_is_and_is_no_other,
            keys: a_key_is_found_by_its_hash_only,
            keys: keys_are_listed_newest_first,
            keys: a_key_is_revoked_once_and_at_once,
            keys: a_key_is_rotated_in_one_step,
            keys: the_last_use_of_a_key_is_kept,
            model: random_operations_agree_with_a_simple_model,
        }
    };
    (@cases $harness:expr; $($module:ident: $case:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::conformance::$module::$case(&$harness).await;
            }
        )*
    };
}
