//! Engines that hand over finished films: what they keep is given to the next attempt, a client's
//! cancel reaches them and a stop does not, and a film is looked into before it is believed.

use std::sync::Arc;

use kinora_contract::{
    FailureCode, FrameSize, Size, TaskId, TaskPhase, VideoLength, VideoSpec, WarningCode,
};
use kinora_store::faulty::{Fault, StoreMethod};
use kinora_worker::{AnyEngine, EngineLineup, ServedEngine, Worker};

use crate::bench::{Bench, DEADLINE, MODEL, Running, spec, until};
use crate::engines::{Act, Puppet};
use crate::film_studio::{Film, GOOD, Studio};

fn worker(bench: &Bench, studio: &Arc<Studio>) -> Worker {
    let mut worker = bench.worker_of(std::iter::empty::<(&str, &Arc<Puppet>)>());
    let served = ServedEngine {
        seats: None,
        engine: AnyEngine::Film(studio.clone()),
        progress_timeout: DEADLINE,
        device: None,
        preset: None,
    };
    worker.lineup = EngineLineup::new([(MODEL.to_owned(), served)]);
    worker
}

/// Two seconds without sound.
fn small() -> VideoSpec {
    VideoSpec {
        seconds: VideoLength::Fixed(2),
        frame: FrameSize::Fixed(Size::new(64, 64)),
        generate_audio: false,
        ..spec(MODEL)
    }
}

/// A worker whose studio has begun its first film.
async fn at_work(bench: &Bench, studio: &Arc<Studio>) -> (Running, TaskId) {
    let running = Running::start(worker(bench, studio));
    let id = bench.submit_spec(small()).await;
    until("the studio works", async || {
        studio.seen().tickets.len() == 1
    })
    .await;
    (running, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_film_is_published_as_it_is_measured() {
    let bench = Bench::new();
    let studio = Studio::delivers(GOOD);
    let running = Running::start(worker(&bench, &studio));
    let asked = VideoSpec {
        seconds: VideoLength::Auto,
        ..small()
    };
    let id = bench.submit_spec(asked).await;
    let artifact = bench.completes(id).await;
    assert_eq!((artifact.width, artifact.height), GOOD.size);
    assert_eq!((artifact.frames, artifact.has_audio), (GOOD.frames, false));
    assert!(artifact.first_frame.is_some() && artifact.last_frame.is_some());
    let task = bench.task(id).await;
    assert_eq!(task.engine.as_deref(), Some("studio/1"));
    assert_eq!(task.warnings, [WarningCode::SeedIgnored.into()]);
    assert_eq!(
        task.spec.seconds,
        VideoLength::Fixed(2),
        "17 frames at 8 a second"
    );
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_leaves_the_film_in_work_and_the_next_attempt_follows_it() {
    let bench = Bench::new();
    let studio = Studio::new(GOOD);
    let (running, id) = at_work(&bench, &studio).await;
    running.shutdown.now();
    running.returns().await;
    let seen = studio.seen();
    assert_eq!((seen.cancelled, seen.dropped), (0, 1));

    let running = Running::start(worker(&bench, &studio));
    until("the studio works", async || {
        studio.seen().tickets.len() == 2
    })
    .await;
    studio.open.send_replace(true);
    let artifact = bench.completes(id).await;
    let ticket = format!("ticket of {id}");
    assert_eq!(studio.seen().tickets, [None, Some(ticket)]);
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

/// Were the work called off, the next attempt would find it cancelled under the same key.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_when_a_ticket_comes_costs_no_work() {
    let bench = Bench::new();
    // Longer than any other call is tried.
    bench
        .store_plan
        .fail_next(StoreMethod::StoreTicket, 5, Fault::Before);
    let studio = Studio::delivers(GOOD);
    let running = Running::start(worker(&bench, &studio));
    let id = bench.submit_spec(small()).await;
    bench.completes(id).await;
    assert_eq!(bench.store_plan.calls(StoreMethod::StoreTicket), 6);
    assert_eq!(studio.seen().tickets, [None]);
    assert_eq!((studio.seen().cancelled, studio.seen().dropped), (0, 0));
    assert_eq!(bench.task(id).await.attempt, 1);
    running.drained().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clients_cancel_reaches_the_studio() {
    let bench = Bench::new();
    let studio = Studio::new(GOOD);
    let (running, id) = at_work(&bench, &studio).await;
    bench.cancel(id).await;
    until("the studio was told", async || studio.seen().cancelled == 1).await;
    assert_eq!(bench.phase(id).await, TaskPhase::Failed);
    running.drained().await;
    assert_eq!(studio.seen().dropped, 0);
    bench.holds_only(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_film_that_nobody_works_on_any_more_is_called_off_until_the_studio_hears() {
    let bench = Bench::new();
    let studio = Studio::new(GOOD);
    let (running, id) = at_work(&bench, &studio).await;
    running.shutdown.now();
    running.returns().await;
    // No run is there to pass this on, at first the studio is away, and files of the run cannot be removed.
    bench.held.hold_removals(true);
    bench.cancel(id).await;
    assert_eq!(studio.seen().called_off, [""; 0]);
    studio.note(|seen| seen.is_away = true);
    let running = Running::start(worker(&bench, &studio));
    for times in 1..=2 {
        until("the studio was told", async || {
            // The second time after a pause.
            bench.clock.advance(100);
            studio.seen().called_off.len() == times
        })
        .await;
    }
    let other = bench.submit_spec(small()).await;
    until("another film", async || studio.seen().tickets.len() == 2).await;
    studio.open.send_replace(true);
    bench.completes(other).await;
    running.drained().await;
    let ticket = format!("ticket of {id}");
    assert_eq!(studio.seen().called_off, [&*ticket; 2], "and never again");
}

/// Two workers may serve one model by different engines, and either may take the chore.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_engine_makes_frames_leaves_a_film_to_the_worker_that_ordered_it() {
    let bench = Bench::new();
    let studio = Studio::new(GOOD);
    let (running, id) = at_work(&bench, &studio).await;
    running.shutdown.now();
    running.returns().await;
    bench.cancel(id).await;
    // More often than a worker that could call it off would try.
    for _ in 0..25 {
        let swept = bench.store_plan.calls(StoreMethod::Sweep);
        let running = Running::start(bench.worker(&Arc::new(Puppet::new(Act::Good))));
        let sweeps = || bench.store_plan.calls(StoreMethod::Sweep);
        until("it has swept", async || sweeps() > swept).await;
        running.drained().await;
        bench.clock.advance(10 * 60 * 1000);
    }
    bench.clock.advance(10 * 60 * 1000);
    let running = Running::start(worker(&bench, &studio));
    until("the studio was told", async || {
        !studio.seen().called_off.is_empty()
    })
    .await;
    running.drained().await;
    assert_eq!(studio.seen().called_off, [format!("ticket of {id}")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_film_that_is_not_what_was_asked_for_is_not_believed() {
    let bench = Bench::new();
    let wrong = [
        (
            "too wide",
            Film {
                size: (96, 64),
                ..GOOD
            },
        ),
        ("too long", Film { frames: 24, ..GOOD }),
        ("too short", Film { frames: 8, ..GOOD }),
        (
            "undecodable",
            Film {
                is_damaged: true,
                ..GOOD
            },
        ),
        (
            "no video",
            Film {
                is_video: false,
                ..GOOD
            },
        ),
    ];
    let wrong_everywhere = [wrong[3], wrong[4]];
    for (what, film) in wrong {
        let studio = Studio::delivers(film);
        let running = Running::start(worker(&bench, &studio));
        let id = bench.submit_spec(small()).await;
        let (code, message) = bench.fails(id).await;
        assert_eq!(code, FailureCode::GenerationFailed.as_str(), "{what}");
        assert_eq!(message, FailureCode::GenerationFailed.sentence(), "{what}");
        running.drained().await;
    }
    // Even if it has been paid for.
    for (what, film) in wrong_everywhere {
        let studio = Arc::new(Studio {
            keeps_mismatched: true,
            ..Studio::of(film)
        });
        studio.open.send_replace(true);
        let running = Running::start(worker(&bench, &studio));
        let id = bench.submit_spec(small()).await;
        let (code, _) = bench.fails(id).await;
        assert_eq!(code, FailureCode::GenerationFailed.as_str(), "{what}");
        running.drained().await;
    }
    bench.holds_only(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_film_that_cannot_be_decoded_is_kept_where_the_operator_wants_it() {
    let bench = Bench::new();
    let film = Film {
        is_damaged: true,
        ..GOOD
    };
    let studio = Arc::new(Studio {
        keeps_undecodable: true,
        ..Studio::of(film)
    });
    studio.open.send_replace(true);
    let running = Running::start(worker(&bench, &studio));
    let id = bench.submit_spec(small()).await;
    let artifact = bench.completes(id).await;
    assert_eq!((artifact.width, artifact.height), GOOD.size);
    // A client must not go on from a plain picture.
    assert_eq!(
        (&artifact.first_frame, &artifact.last_frame),
        (&None, &None)
    );
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_film_that_was_paid_for_is_kept_as_it_is_and_the_task_says_what_differs() {
    let bench = Bench::new();
    let film = Film {
        size: (96, 64),
        frames: 32,
        ..GOOD
    };
    let studio = Arc::new(Studio {
        keeps_mismatched: true,
        ..Studio::of(film)
    });
    studio.open.send_replace(true);
    let running = Running::start(worker(&bench, &studio));
    let loud = VideoSpec {
        generate_audio: true,
        ..small()
    };
    let id = bench.submit_spec(loud).await;
    let artifact = bench.completes(id).await;
    assert_eq!((artifact.width, artifact.height), film.size);
    assert!((artifact.duration_seconds - 4.0).abs() < 0.01);
    assert!(artifact.first_frame.is_some() && !artifact.has_audio);
    let task = bench.task(id).await;
    let told: Vec<_> = task
        .warnings
        .iter()
        .map(|one| (&*one.code, &*one.message))
        .collect();
    let seed = WarningCode::SeedIgnored;
    assert_eq!(
        told,
        [
            ("size_differs", "The video is 96x64; 64x64 was requested."),
            (
                "length_differs",
                "The video lasts 4.0 s; 2 s was requested."
            ),
            (
                "sound_differs",
                "The video has no sound, although it was requested."
            ),
            (seed.as_str(), seed.sentence()),
        ]
    );
    running.drained().await;
    bench.holds_only(&[artifact]).await;
}
