//! The decision, pure: a record, a caller, a need and a time go in, yes or exactly why not comes out.

use aws_lc_rs::constant_time;

use crate::{
    clock::Timestamp,
    handle::Need,
    policy::{Policy, Rules},
    record::{Partition, Record, SubjectKey},
    refusal::Denial,
};

/// Whether this caller may use this record for this need at this time. The order is part of the rule: ownership comes
/// first, so that nobody but the owner learns anything else.
pub(crate) fn decide(
    record: &Record,
    caller: &Partition,
    (policy, rules): (&Policy, &Rules),
    need: &Need,
    now: Timestamp,
) -> Result<(), Denial> {
    owned(record, caller, rules)?;
    alive(record, now)?;
    fits(record, policy, need)
}

/// Whether the record belongs to this caller.
///
/// "MUST NOT treat possession of a handle as authentication": MCP, Security Best Practices, State Handle Hijacking.
pub(crate) fn owned(record: &Record, caller: &Partition, rules: &Rules) -> Result<(), Denial> {
    let (bound, owner) = (rules.bound, &record.partition);
    let principal = match bound.principal {
        true => same(owner.subject.as_ref(), caller.subject.as_ref(), rules.bearer, same_subject),
        // What this policy does not bind, no record may be bound to: it was made under a stricter one.
        false => owner.subject.is_none(),
    };
    if !principal {
        return Err(Denial::ForeignPrincipal);
    }
    let tenant = match bound.tenant {
        // The store has looked in the caller's tenant only; that it did so is checked here as well.
        true => same(owner.tenant.as_ref(), caller.tenant.as_ref(), rules.bearer, PartialEq::eq),
        false => owner.tenant.is_none(),
    };
    if !tenant {
        return Err(Denial::Unknown);
    }
    let client = match bound.client {
        true => same(owner.client.as_ref(), caller.client.as_ref(), rules.bearer, PartialEq::eq),
        false => owner.client.is_none(),
    };
    if client { Ok(()) } else { Err(Denial::ForeignClient) }
}

/// Equality of one part of who somebody is, in full: a/a is equal; a/b, a/none and none/a are not; none/none is only
/// where the policy says `bearer`.
fn same<T>(owner: Option<&T>, caller: Option<&T>, bearer: bool, equal: impl Fn(&T, &T) -> bool) -> bool {
    match (owner, caller) {
        (Some(owner), Some(caller)) => equal(owner, caller),
        (None, None) => bearer,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

pub(crate) fn same_subject(owner: &SubjectKey, caller: &SubjectKey) -> bool {
    owner.key == caller.key && constant_time::verify_slices_are_equal(&owner.mac, &caller.mac).is_ok()
}

/// Whether the record has neither been revoked nor ended.
fn alive(record: &Record, now: Timestamp) -> Result<(), Denial> {
    if record.revoked.is_some() {
        return Err(Denial::Revoked);
    }
    if now >= record.expires {
        return Err(Denial::Expired);
    }
    if now >= record.ends {
        return Err(Denial::Idle);
    }
    Ok(())
}

/// Whether the record was made under this policy and for this need.
fn fits(record: &Record, policy: &Policy, need: &Need) -> Result<(), Denial> {
    if record.policy != *policy.version() {
        return Err(Denial::PolicyChanged);
    }
    if record.object.kind != need.object {
        return Err(Denial::WrongObject);
    }
    if !record.scopes.contains(&need.scope) {
        return Err(Denial::MissingScope);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        caller::{ClientId, ScopeSet, Tenant},
        clock::from_micros,
        keys::KeyId,
        record::{
            Digest, NewRecord, Object, ObjectRef, ObjectType, ObjectVersion, PolicyVersion, Reason, Receipt,
            Revocation, Why,
        },
    };

    const NOW: i64 = 1_800_000_000_000_000;

    fn policy(more: &str) -> Policy {
        Policy::from_toml(&format!(
            "version = \"1\"\n[objects.basket]\nlifetime = \"10s\"\nidle = \"5s\"\nscopes = [\"read\", \"write\"]\ncreated_by = \"make\"\n{more}"
        ))
        .expect("a policy")
    }

    fn subject(fill: u8) -> SubjectKey {
        SubjectKey { key: KeyId([1; 8]), mac: [fill; 32] }
    }

    fn somebody() -> Partition {
        Partition {
            subject: Some(subject(1)),
            tenant: Some(Tenant::new("t").expect("a tenant")),
            client: Some(ClientId::new("c").expect("a client")),
        }
    }

    fn record(partition: Partition) -> Record {
        NewRecord {
            digest: Digest([7; 32]),
            partition,
            object: Object {
                kind: ObjectType::new("basket").expect("a type"),
                reference: ObjectRef::new("b1").expect("a reference"),
                version: ObjectVersion::new("1").expect("a version"),
            },
            scopes: ScopeSet::new(["read"]).expect("a scope"),
            policy: PolicyVersion::new("1").expect("a version"),
            lifetime: Duration::from_secs(10),
            idle: Some(Duration::from_secs(5)),
        }
        .minted_at(from_micros(NOW))
    }

    fn need(object: &str, scope: &str) -> Need {
        Need::new(object.parse().expect("a type"), scope.parse().expect("a scope"))
    }

    fn ask_at(micros: i64, record: &Record, caller: &Partition, more: &str) -> Result<(), Denial> {
        let policy = policy(more);
        let rules = policy.rules_for("basket").expect("rules");
        decide(record, caller, (&policy, rules), &need("basket", "read"), from_micros(NOW + micros))
    }

    fn ask(record: &Record, caller: &Partition, more: &str) -> Result<(), Denial> {
        ask_at(0, record, caller, more)
    }

    #[test]
    fn the_owner_may_and_anybody_who_differs_in_one_respect_may_not() {
        let record = record(somebody());

        assert_eq!(ask(&record, &somebody(), ""), Ok(()));
        let other = Partition { subject: Some(subject(2)), ..somebody() };
        assert_eq!(ask(&record, &other, ""), Err(Denial::ForeignPrincipal));
        let mut last_bit = subject(1);
        last_bit.mac[31] ^= 1;
        assert_eq!(
            ask(&record, &Partition { subject: Some(last_bit), ..somebody() }, ""),
            Err(Denial::ForeignPrincipal)
        );
        let other_key = SubjectKey { key: KeyId([2; 8]), ..subject(1) };
        assert_eq!(
            ask(&record, &Partition { subject: Some(other_key), ..somebody() }, ""),
            Err(Denial::ForeignPrincipal)
        );
        let other = Partition { tenant: Some(Tenant::new("t2").expect("a tenant")), ..somebody() };
        assert_eq!(ask(&record, &other, ""), Err(Denial::Unknown));
        let other = Partition { client: Some(ClientId::new("c2").expect("a client")), ..somebody() };
        assert_eq!(ask(&record, &other, ""), Err(Denial::ForeignClient));
    }

    #[test]
    fn equality_in_full() {
        let eq = |owner: Option<u8>, caller: Option<u8>, bearer| {
            same(owner.as_ref(), caller.as_ref(), bearer, PartialEq::eq)
        };

        assert!(eq(Some(1), Some(1), false));
        for (owner, caller) in [(Some(1), Some(2)), (Some(1), None), (None, Some(1))] {
            assert!(!eq(owner, caller, false), "{owner:?} {caller:?}");
            assert!(!eq(owner, caller, true), "{owner:?} {caller:?}, bearer");
        }
        assert!(!eq(None, None, false));
        assert!(eq(None, None, true));
    }

    #[test]
    fn no_missing_part_is_equal_to_anything_but_in_bearer_mode() {
        for part in 0..3 {
            let without = |mut of: Partition| {
                match part {
                    0 => of.subject = None,
                    1 => of.tenant = None,
                    _ => of.client = None,
                }
                of
            };
            let (theirs, nobodys) = (record(somebody()), record(without(somebody())));

            for bearer in ["", "bearer = true"] {
                assert!(ask(&theirs, &without(somebody()), bearer).is_err(), "a/none");
                assert!(ask(&nobodys, &somebody(), bearer).is_err(), "none/a");
            }
            assert!(ask(&nobodys, &without(somebody()), "").is_err(), "none/none");
            assert_eq!(ask(&nobodys, &without(somebody()), "bearer = true"), Ok(()), "none/none, bearer");
        }
    }

    #[test]
    fn what_the_policy_does_not_bind_is_not_compared() {
        let without_client = Partition { client: None, ..somebody() };
        let record = record(without_client.clone());

        assert_eq!(ask(&record, &without_client, "bound = [\"principal\", \"tenant\"]"), Ok(()));
        let other = Partition { subject: Some(subject(2)), ..without_client };
        assert_eq!(ask(&record, &other, "bound = [\"principal\", \"tenant\"]"), Err(Denial::ForeignPrincipal));
    }

    /// A policy that binds less must not hand over what was made under one that bound more.
    #[test]
    fn what_was_bound_stays_bound_under_a_policy_that_binds_less() {
        let record = record(somebody());
        for (bound, caller, expected) in [
            ("[\"tenant\", \"client\"]", Partition { subject: None, ..somebody() }, Denial::ForeignPrincipal),
            ("[\"principal\", \"client\"]", Partition { tenant: None, ..somebody() }, Denial::Unknown),
            ("[\"principal\", \"tenant\"]", Partition { client: None, ..somebody() }, Denial::ForeignClient),
        ] {
            for bearer in ["", "\nbearer = true"] {
                assert_eq!(ask(&record, &caller, &format!("bound = {bound}{bearer}")), Err(expected), "{bound}");
            }
        }
    }

    #[test]
    fn it_ends_at_the_tick() {
        let unused = record(somebody());
        let used = Record { ends: unused.expires, ..unused.clone() };
        let (idle, absolute) = (5_000_000, 10_000_000);

        assert_eq!(ask_at(idle - 1, &unused, &somebody(), ""), Ok(()));
        assert_eq!(ask_at(idle, &unused, &somebody(), ""), Err(Denial::Idle));
        assert_eq!(ask_at(idle + 1, &unused, &somebody(), ""), Err(Denial::Idle));
        assert_eq!(ask_at(absolute - 1, &used, &somebody(), ""), Ok(()));
        assert_eq!(ask_at(absolute, &used, &somebody(), ""), Err(Denial::Expired));
        assert_eq!(ask_at(absolute + 1, &used, &somebody(), ""), Err(Denial::Expired));
    }

    #[test]
    fn strangers_do_not_learn_that_it_has_ended() {
        let mut record = record(somebody());
        let stranger = Partition { subject: Some(subject(2)), ..somebody() };
        record.revoked = Some(Revocation {
            at: record.created,
            why: Why { reason: Reason::new("r").expect("a reason"), receipt: Receipt::new("r").expect("a receipt") },
        });

        assert_eq!(ask_at(99_000_000, &record, &stranger, ""), Err(Denial::ForeignPrincipal));
        assert_eq!(ask_at(99_000_000, &record, &somebody(), ""), Err(Denial::Revoked));
    }

    #[test]
    fn it_is_for_one_policy_one_type_and_its_scopes() {
        let record = record(somebody());
        let policy = policy("");
        let rules = policy.rules_for("basket").expect("rules");
        let ask = |record: &Record, need: &Need| decide(record, &somebody(), (&policy, rules), need, from_micros(NOW));

        assert_eq!(ask(&record, &need("basket", "write")), Err(Denial::MissingScope));
        assert_eq!(ask(&record, &need("order", "read")), Err(Denial::WrongObject));
        let older = Record { policy: PolicyVersion::new("0").expect("a version"), ..record };
        assert_eq!(ask(&older, &need("basket", "read")), Err(Denial::PolicyChanged));
    }

    proptest! {
        #[test]
        fn adding_a_restriction_never_turns_no_into_yes(
            owner in 0_u8..3, caller in 0_u8..3, micros in 0_i64..12_000_000,
            bound in prop::sample::subsequence(vec!["\"principal\"", "\"tenant\"", "\"client\""], 0..=3),
        ) {
            let partition = |which: u8| Partition {
                subject: (which & 1 == 0).then(|| subject(which)),
                tenant: (which != 1).then(|| Tenant::new("t").expect("a tenant")),
                client: (which != 2).then(|| ClientId::new("c").expect("a client")),
            };
            prop_assume!(bound.contains(&"\"principal\"") || bound.contains(&"\"tenant\""));
            let kept = |of: Partition| Partition {
                subject: of.subject.filter(|_| bound.contains(&"\"principal\"")),
                tenant: of.tenant.filter(|_| bound.contains(&"\"tenant\"")),
                client: of.client.filter(|_| bound.contains(&"\"client\"")),
            };
            let fewer = format!("bound = [{}]", bound.join(", "));

            let less = ask_at(micros, &record(kept(partition(owner))), &kept(partition(caller)), &fewer);
            let more = ask_at(micros, &record(partition(owner)), &partition(caller), "");

            prop_assert!(more.is_err() || less.is_ok(), "{more:?} with everything bound, {less:?} with {fewer}");
        }
    }
}
