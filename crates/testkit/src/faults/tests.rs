//! A plan does what it says, and equal plans do the same.

use super::*;

/// The methods of a wrapped store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Method {
    Read,
    Write,
}

/// Calls `method` once; returns whether it was executed, and its result.
async fn call(plan: &Plan<Method>, method: Method) -> (bool, Result<(), &'static str>) {
    let mut done = false;
    let act = async {
        done = true;
        Ok(())
    };
    let told = plan.call(method, act, |how| how).await;
    (done, told)
}

#[tokio::test]
async fn a_call_fails_by_its_number_before_or_after_it_is_done() {
    const LOST: Result<(), &str> = Err("done, and its answer lost");
    const NOT_DONE: Result<(), &str> = Err("not done");
    let plan = Plan::seeded(1);
    plan.fail_call(Method::Write, 2, Fault::Before);
    plan.fail_call(Method::Write, 3, Fault::After);
    for wanted in [
        (true, Ok(())),
        (false, NOT_DONE),
        (true, LOST),
        (true, Ok(())),
    ] {
        assert_eq!(call(&plan, Method::Read).await, (true, Ok(())));
        assert_eq!(call(&plan, Method::Write).await, wanted);
    }
    plan.fail_next(Method::Write, 1, Fault::Before);
    assert_eq!(call(&plan, Method::Write).await, (false, NOT_DONE));
    assert_eq!(call(&plan, Method::Write).await, (true, Ok(())));
    let wanted = Injected {
        before: 2,
        after: 1,
        delays: 0,
    };
    assert_eq!((plan.injected(), plan.calls(Method::Write)), (wanted, 6));
}

#[tokio::test]
async fn a_method_s_own_rates_leave_the_others_alone() {
    let plan = Plan::seeded(1);
    plan.set(Rates::AWAY);
    plan.set_of(Method::Read, Some(Rates::NONE));
    assert!(!call(&plan, Method::Write).await.0);
    assert!(call(&plan, Method::Read).await.0);
    plan.set_of(Method::Read, None);
    assert!(!call(&plan, Method::Read).await.0);
    plan.set(Rates::NONE);
    assert!(call(&plan, Method::Write).await.0);
}

#[test]
fn equal_seeds_fail_alike_and_as_often_as_they_were_told() {
    const CALLS: u32 = 100_000;
    let faults = |seed| {
        let plan = Plan::seeded(seed);
        plan.set(Rates::each(50_000));
        let decided: Vec<_> = (0..CALLS)
            .map(|_| plan.decide(Method::Read).fault)
            .collect();
        (decided, plan.injected())
    };
    let (decided, injected) = faults(7);
    assert_eq!((&decided, injected), (&faults(7).0, faults(7).1));
    assert_ne!(decided, faults(8).0);
    for count in [injected.before, injected.after, injected.delays] {
        assert!((4_700..5_300).contains(&count), "{injected:?}");
    }
}
