//! Which clients receive a state, and that each receives it once.

use kinora_contract::Status;

use super::*;

fn id(number: u8) -> TaskId {
    TaskId::from_parts(number.into(), [number; 10])
}

fn glance(id: TaskId, status: Status, progress: u8) -> TaskGlance {
    TaskGlance {
        id,
        status,
        progress,
        created_at_ms: 1,
    }
}

/// These tasks had ended when the project was first followed.
fn ended(tasks: &[TaskId]) -> EndedTasks {
    EndedTasks {
        tasks: tasks.iter().map(|id| (9, *id)).collect(),
        from_ms: 0,
        next_ms: 7,
        now_ms: 9,
    }
}

fn project(hub: &mut ProjectHub) -> Arc<Mailbox> {
    hub.join(&of_project("one"))
}

pub(super) fn of_project(project: &str) -> WatchSubject {
    WatchSubject {
        project: project.into(),
        task: None,
    }
}

pub(super) fn of_task(id: TaskId, project: &str) -> WatchSubject {
    WatchSubject {
        task: Some(id),
        ..of_project(project)
    }
}

/// Checks the project as the follower does.
fn look(hub: &mut ProjectHub, unfinished: &[TaskGlance], ended_tasks: &[TaskId]) {
    hub.checks += 1;
    hub.deliver_project(unfinished, &ended(ended_tasks));
}

/// The tasks of all letters.
fn taken(mailbox: &Mailbox) -> Vec<TaskId> {
    std::iter::from_fn(|| mailbox.pop())
        .map(|letter| letter.id)
        .collect()
}

#[test]
fn each_change_of_a_task_is_told_once_to_those_who_wait_for_it() {
    let mut hub = ProjectHub::default();
    let boxes = [id(1), id(1), id(2)].map(|one| hub.join(&of_task(one, "one")));
    for (glance, is_news) in [
        (glance(id(1), Status::Queued, 0), true),
        (glance(id(1), Status::Queued, 0), false),
        (glance(id(1), Status::InProgress, 0), true),
        (glance(id(1), Status::InProgress, 1), true),
        (glance(id(1), Status::InProgress, 1), false),
    ] {
        hub.deliver_glance(id(1), Some(glance), None);
        for mailbox in &boxes[..2] {
            assert_eq!(taken(mailbox).len(), usize::from(is_news), "{glance:?}");
        }
    }
    hub.deliver_glance(id(1), None, None);
    assert_eq!(taken(&boxes[0]), [id(1)], "it is gone");
    assert!(boxes[2].is_empty());
}

#[test]
fn a_look_tells_what_was_not_heard() {
    let mut hub = ProjectHub::default();
    let mailbox = project(&mut hub);
    let queued = glance(id(1), Status::Queued, 0);
    hub.record_read(&[queued], &ended(&[id(2)]));
    assert_eq!(hub.next_ms(), Some(7));
    look(&mut hub, &[queued], &[id(2)]);
    assert_eq!(taken(&mailbox), [], "it has read that by itself");
    let new = glance(id(3), Status::Queued, 0);
    look(
        &mut hub,
        &[glance(id(1), Status::InProgress, 5), new],
        &[id(2)],
    );
    assert_eq!(taken(&mailbox), [id(1), id(3)]);
    // One has ended, one was removed, and one was created and ended in between.
    look(&mut hub, &[], &[id(2), id(1), id(4)]);
    let mut told = taken(&mailbox);
    told.sort_unstable();
    assert_eq!(told, [id(1), id(3), id(4)]);
    look(&mut hub, &[], &[id(2), id(1), id(4)]);
    assert_eq!(taken(&mailbox), []);
}

#[test]
fn ends_of_before_are_no_news_to_those_who_begin_to_follow() {
    let mut hub = ProjectHub::default();
    let mailbox = project(&mut hub);
    assert_eq!(hub.next_ms(), None, "nobody knows yet how it stands");
    let running = glance(id(1), Status::InProgress, 3);
    hub.record_read(&[running], &ended(&[]));
    hub.checks += 1;
    let past = EndedTasks {
        tasks: vec![(8, id(1)), (8, id(2)), (9, id(3))],
        ..ended(&[])
    };
    hub.deliver_project(&[], &past);
    // The first one ended while it was being read, and has an earlier time.
    assert_eq!(taken(&mailbox), [1, 3].map(id));
}

#[test]
fn nothing_unfinished_follows_an_end() {
    let mut hub = ProjectHub::default();
    let mailbox = project(&mut hub);
    look(&mut hub, &[glance(id(1), Status::InProgress, 9)], &[id(1)]);
    assert_eq!(taken(&mailbox), [id(1)]);
    look(&mut hub, &[glance(id(1), Status::InProgress, 9)], &[]);
    assert_eq!(taken(&mailbox), []);
}

#[test]
fn p08_ends_that_are_told_no_more_are_forgotten() {
    let mut hub = ProjectHub::default();
    let _mailbox = project(&mut hub);
    for number in 0..200 {
        look(&mut hub, &[], &[id(number)]);
        let told = hub.followed.as_ref().unwrap().delivered.len() as u64;
        assert!(told <= CHECKS_REMEMBERED, "{told}");
    }
}

#[test]
fn nothing_is_left_of_those_who_have_left() {
    let mut hub = ProjectHub::default();
    for subject in [of_task(id(1), "one"), of_project("one")] {
        let boxes = [hub.join(&subject), hub.join(&subject)];
        hub.leave(&subject, &boxes[0]);
        assert!(!hub.is_empty());
        hub.leave(&subject, &boxes[0]);
        assert!(!hub.is_empty(), "nobody leaves twice");
        hub.leave(&subject, &boxes[1]);
        assert!(hub.is_empty());
    }
}

/// Two clients follow a project, and a change happens while the second one comes, which reads it before the follower
/// hears of it.
#[test]
fn what_a_later_follower_reads_is_news_for_the_earlier_one() {
    let mut hub = ProjectHub::default();
    let first = project(&mut hub);
    let queued = glance(id(1), Status::Queued, 0);
    hub.record_read(&[queued], &ended(&[]));
    let second = project(&mut hub);
    let new = glance(id(2), Status::Queued, 0);
    // The third ended before anybody followed.
    hub.record_read(&[new], &ended(&[id(1), id(3)]));
    assert_eq!(taken(&first), [id(2), id(1)]);
    hub.deliver_project(&[new], &ended(&[id(1)]));
    assert_eq!(taken(&first), [], "once");
    drop(taken(&second));

    // One that was accepted and has ended meanwhile.
    let third = project(&mut hub);
    let since = EndedTasks {
        tasks: vec![(10, id(4))],
        ..ended(&[])
    };
    hub.record_read(&[], &since);
    hub.checks += 1;
    hub.deliver_project(&[new], &since);
    for mailbox in [&first, &second, &third] {
        assert_eq!(taken(mailbox), [id(4)]);
    }
}

/// Both come at once, and the task ends between their reads.
#[test]
fn an_end_between_the_reads_of_two_new_followers_is_told_to_the_one_that_read_before() {
    let mut hub = ProjectHub::default();
    let boxes = [(); 2].map(|()| project(&mut hub));
    hub.record_read(&[], &ended(&[id(1)]));
    hub.record_read(&[glance(id(1), Status::InProgress, 5)], &ended(&[]));
    assert_eq!(taken(&boxes[0]), [id(1)]);
}
