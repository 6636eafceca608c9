//! What an agent tells at its status port. An agent may be older than the operator, or newer: every field may be missing,
//! and what is not known is left alone.

use serde::Deserialize;

/// Everything that is read of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentStatus {
    /// The version of the protocol.
    pub protocol: u32,
    pub memcached: ServerStatus,
    pub orders: OrdersStatus,
    /// None without TLS.
    pub certificates: Option<ReloadStatus>,
    /// None without a password file.
    pub credentials: Option<ReloadStatus>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerStatus {
    pub phase: String,
    pub version: Option<String>,
    /// The arguments in force.
    pub args: Vec<String>,
    /// `Warm` or `Cold`.
    pub start: Option<String>,
    pub items_recovered: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OrdersStatus {
    /// The restart that was carried out last.
    pub restart: Option<String>,
    /// The hash of Secrets whose files were looked at last.
    pub secret_hash: Option<String>,
    /// Why something was not carried out.
    pub error: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReloadStatus {
    /// Whether what the files hold is in force; none where nobody can look.
    pub in_force: Option<bool>,
    pub error: Option<String>,
}

/// As much of somebody else's words as people read: a pod must not fill a status with them.
pub fn shortened(words: &str) -> String {
    let line = words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

impl AgentStatus {
    /// Whether the files behind this hash are in force; else why not, if the agent says so.
    pub fn has_secrets(&self, hash: &str) -> Result<bool, String> {
        if self.orders.secret_hash.as_deref() != Some(hash) {
            return Ok(false);
        }
        let parts = [("certificates", &self.certificates), ("passwords", &self.credentials)];
        for (what, part) in parts {
            if let Some(ReloadStatus { in_force: Some(false), error: Some(error) }) = part {
                return Err(format!("the new {what} cannot be used: {}", shortened(error)));
            }
        }
        let is_in_force = |part: &Option<ReloadStatus>| part.as_ref().is_none_or(|part| part.in_force != Some(false));
        Ok(parts.iter().all(|(_, part)| is_in_force(part)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(value: serde_json::Value) -> AgentStatus {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_older_agent_and_a_newer_one_are_understood() {
        assert_eq!(status(json!({})), AgentStatus::default());
        let newer = status(json!({"protocol": 9, "memcached": {"phase": "Ready", "moon": "full"}, "more": []}));
        assert_eq!((newer.protocol, newer.memcached.phase.as_str()), (9, "Ready"));
    }

    #[test]
    fn secrets_are_in_force_when_the_agent_has_looked_at_them_and_a_client_sees_them() {
        let told = |hash: &str, in_force, error: Option<&str>| {
            let part = json!({"inForce": in_force, "error": error});
            status(json!({"orders": {"secretHash": hash}, "certificates": part})).has_secrets("b")
        };
        assert_eq!(told("a", Some(true), None), Ok(false), "it has not looked yet");
        assert_eq!(told("b", Some(true), None), Ok(true));
        assert_eq!(told("b", None, None), Ok(true), "nobody can look");
        assert_eq!(told("b", Some(false), None), Ok(false));
        assert!(told("b", Some(false), Some("no key")).unwrap_err().contains("certificates cannot be used: no key"));
    }
}
