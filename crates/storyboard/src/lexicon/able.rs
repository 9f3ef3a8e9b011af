//! The actions that each subject can do. It knows bodies, not words.

use crate::subject::{Act, Body, Stance, Subject};

/// The action of `subject` for a prompt that asks for `act`; `None` if it cannot do it.
pub(crate) fn able(subject: Subject, act: Act) -> Option<Act> {
    let facts = subject.facts();
    let (body, stance) = (facts.body, facts.stance);
    let lives = matches!(
        body,
        Body::Person | Body::Quadruped | Body::Bird | Body::Insect | Body::Swimmer
    );
    let walks = lives && matches!(stance, Stance::Walks);
    let can = match act {
        Act::Stand => true,
        Act::Walk | Act::Run => match stance {
            Stance::Walks if lives => return Some(act),
            Stance::Walks | Stance::Rolls | Stance::Floats => return Some(Act::Move),
            _ => false,
        },
        Act::Move => match stance {
            Stance::Walks if lives && subject != Subject::Skier => return Some(Act::Walk),
            Stance::Flies => return Some(Act::Fly),
            Stance::Swims => return Some(Act::Swim),
            Stance::Walks | Stance::Rolls | Stance::Floats => true,
            _ => subject == Subject::Ball,
        },
        Act::Fly => !matches!(stance, Stance::Hangs) && body != Body::Plant,
        Act::Land => stance == Stance::Flies,
        Act::Rise => {
            matches!(stance, Stance::Flies) || matches!(subject, Subject::Sun | Subject::Moon)
        }
        Act::Fall => {
            matches!(stance, Stance::Flies) || matches!(subject, Subject::Sun | Subject::Moon)
        }
        Act::Swim => lives || matches!(stance, Stance::Floats | Stance::Swims),
        Act::Sit | Act::Sleep => lives && stance != Stance::Swims,
        Act::Jump => walks || stance == Stance::Swims || subject == Subject::Ball,
        Act::Dance => body == Body::Person || body == Body::Quadruped,
        Act::Eat => lives,
        Act::Open => matches!(
            body,
            Body::Building | Body::Plant | Body::Thing | Body::Person
        ),
        Act::Wave | Act::Read => body == Body::Person,
        Act::Play if body == Body::Quadruped => return Some(Act::Jump),
        Act::Play => body == Body::Person || matches!(subject, Subject::Piano | Subject::Guitar),
        Act::Turn if body == Body::Person => return Some(Act::Dance),
        Act::Turn => !lives,
        Act::Burn => matches!(
            subject,
            Subject::Candle
                | Subject::Campfire
                | Subject::Lantern
                | Subject::Lamp
                | Subject::LampPost
                | Subject::Volcano
                | Subject::Fireworks
                | Subject::Lighthouse
        ),
    };
    can.then_some(act)
}
