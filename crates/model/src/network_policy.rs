//! Who may connect, as a NetworkPolicy takes it.

use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicyPeer};

use crate::range::Range;
use crate::selector::check_selector;
use crate::violation::FieldErrors;

/// The peers of a rule: each selects pods, or has a range of addresses.
pub fn check_peers(errors: &mut FieldErrors<'_>, peers: &[NetworkPolicyPeer]) {
    for (index, peer) in peers.iter().enumerate() {
        check_peer(&mut errors.index(index), peer);
    }
}

fn check_peer(errors: &mut FieldErrors<'_>, peer: &NetworkPolicyPeer) {
    let NetworkPolicyPeer { ip_block, namespace_selector, pod_selector } = peer;
    let selects = namespace_selector.is_some() || pod_selector.is_some();
    errors.require(selects || ip_block.is_some(), "give a podSelector, a namespaceSelector or an ipBlock");
    check_selector(&mut errors.field("podSelector"), pod_selector.as_ref());
    check_selector(&mut errors.field("namespaceSelector"), namespace_selector.as_ref());
    if let Some(block) = ip_block {
        errors.field("ipBlock").require(!selects, "not together with a selector: make two entries of it");
        check_block(&mut errors.field("ipBlock"), block);
    }
}

fn check_block(errors: &mut FieldErrors<'_>, block: &IPBlock) {
    let range = Range::of(&block.cidr);
    let message = format!("{:?} is no range of addresses: give for example 10.0.0.0/8", block.cidr);
    errors.field("cidr").require(range.is_some(), message);
    for (index, except) in block.except.iter().flatten().enumerate() {
        let is_within = match (&range, Range::of(except)) {
            (Some(range), Some(except)) => range.is_more_than(&except),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let message = format!("{except:?} is no range of addresses within {}", block.cidr);
        errors.field("except").index(index).require(is_within, message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::violation::refused;

    fn fields(peer: &Value) -> Vec<String> {
        let peer = serde_json::from_value(peer.clone()).unwrap();
        refused(|errors| check_peers(errors, &[peer]))
    }

    #[test]
    fn a_peer_selects_or_has_addresses() {
        for good in [
            json!({"podSelector": {}}),
            json!({"podSelector": {}, "namespaceSelector": {"matchLabels": {"team": "a"}}}),
            json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}),
            json!({"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}),
            json!({"ipBlock": {"cidr": "2001:db8::/32"}}),
        ] {
            assert_eq!(fields(&good), [""; 0], "{good}");
        }
        assert_eq!(fields(&json!({})), ["at[0]"]);
        assert_eq!(fields(&json!({"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}})), ["at[0].ipBlock"]);
    }

    #[test]
    fn ranges_are_ranges_and_exceptions_are_inside() {
        for bad in ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "a/8", "10.0.0.0/", "::ffff:10.0.0.0/104"] {
            assert_eq!(fields(&json!({"ipBlock": {"cidr": bad}})), ["at[0].ipBlock.cidr"], "{bad}");
        }
        for bad in ["11.0.0.0/16", "10.0.0.0/8", "2001:db8::/32", "x"] {
            let block = json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": [bad]}});
            assert_eq!(fields(&block), ["at[0].ipBlock.except[0]"], "{bad}");
        }
        let expression = json!({"podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}});
        assert_eq!(fields(&expression), ["at[0].podSelector.matchExpressions[0].values"]);
    }
}
