//! Counting who is alone says the same as leaving each task out and learning again.

use super::*;
use crate::{learn::classes::fit, learn::evidence::Call};

/// A generator that needs no crate: the tests must be the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn value(random: &mut Random, kind: u64) -> String {
    let n = random.below(6);
    match kind {
        0 => format!(r#"{{"to": "v{n}"}}"#),
        1 => format!(r#"{{"to": {}}}"#, i64::try_from(n * n).unwrap() - 9),
        2 => format!(r#"{{"to": "p{}@d{n}.org"}}"#, random.below(99)),
        3 => format!(r#"{{"to": "top{}/f{n}/{}"}}"#, random.below(2), random.below(99)),
        4 => format!(r#"{{"to": ["v{n}", "v{}"]}}"#, random.below(6)),
        5 => format!(r#"{{"to": [{n}, {}]}}"#, random.below(40)),
        _ => String::from("{}"),
    }
}

#[test]
fn counting_is_leaving_out() {
    let mut random = Random(7);
    let (mut fitted, mut lonely) = (0, 0);
    for round in 0..400 {
        let mut world = World::new(&[("bank.pay", EffectClass::ExternalWrite)]);
        let kind = random.below(6);
        let gaps = random.below(3);
        for _ in 0..1 + random.below(9) {
            let session = world.session("");
            for _ in 0..1 + random.below(3) {
                let kind = if random.below(4) < gaps { 6 } else { kind };
                world.call(session, "bank.pay", &value(&mut random, kind));
            }
        }
        let sessions: Vec<Seq> = world.recording.sessions.keys().copied().collect();
        let task = |session| sessions.iter().position(|one| *one == session).unwrap();
        let calls: Vec<Call<'_>> = world
            .recording
            .calls
            .iter()
            .map(|observation| Call {
                observation,
                args: observation.args.as_ref().unwrap(),
                task: task(observation.session),
            })
            .collect();
        for class in Class::ALL {
            let Some(all) = fit(class, "to", &calls, 2) else { continue };
            fitted += 1;
            for out in 0..sessions.len() {
                let (own, others): (Vec<_>, Vec<_>) =
                    calls.iter().copied().partition(|call| call.task == out);
                let without =
                    if class == Class::Free { None } else { fit(class, "to", &others, 2) };
                let refused = class != Class::Free
                    && without.is_none_or(|fitted| {
                        let condition = fitted.condition.unwrap();
                        own.iter().any(|call| eval(&condition, call) != Truth::True)
                    });
                assert_eq!(all.alone.contains(&out), refused, "{round} {class:?} {out}");
                lonely += usize::from(refused);
            }
        }
    }
    assert!(fitted > 500 && lonely > 500, "{fitted} {lonely}");
}
