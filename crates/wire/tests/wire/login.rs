//! ASCII authentication: right, wrong, none, rotated.

use memcached_wire::{Connection, Credentials, Error, ErrorClass, Expiry, Stream};
use testbed::{Server, wait};

use super::{connect, endpoint, key};

struct Guarded {
    server: Server,
    file: tempfile::NamedTempFile,
}

impl Guarded {
    async fn start(users: &str) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), users).unwrap();
        let server = Server::start(&["-Y", file.path().to_str().unwrap()]).await.unwrap();
        Self { server, file }
    }

    async fn login(&self, user: &str, password: &str) -> memcached_wire::Result<Connection<Stream>> {
        let credentials = Credentials::new(user, password).unwrap();
        endpoint(self.server.address()).with_credentials(credentials).connect().await
    }
}

#[tokio::test]
async fn the_right_password_opens_the_door() {
    let guarded = Guarded::start("ann:secret\nbob:with space\n").await;
    for (user, password) in [("ann", "secret"), ("bob", "with space")] {
        let mut connection = guarded.login(user, password).await.unwrap();
        connection.set(&key("k"), b"x", 0, Expiry::NEVER).await.unwrap();
        assert!(connection.get(&key("k")).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_user_are_refused() {
    let guarded = Guarded::start("ann:secret\n").await;
    for (user, password) in [("ann", "secre"), ("ann", "secrets"), ("ann", ""), ("eve", "secret")] {
        let error = guarded.login(user, password).await.unwrap_err();
        assert!(matches!(error, Error::LoginRefused), "{user}: {error}");
        assert_eq!(error.class(), ErrorClass::Unauthenticated);
    }
}

#[tokio::test]
async fn without_a_login_nothing_is_answered() {
    let guarded = Guarded::start("ann:secret\n").await;
    let error = connect(&guarded.server).await.version().await.unwrap_err();
    assert!(matches!(error, Error::LoginRequired), "{error}");
    let error = connect(&guarded.server).await.get(&key("k")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unauthenticated, "{error}");
    let error = connect(&guarded.server).await.metadump().await.unwrap().next().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unauthenticated, "{error}");
}

#[tokio::test]
async fn a_rotated_password_is_taken_and_open_connections_stay() {
    let guarded = Guarded::start("ann:old\n").await;
    let mut before = guarded.login("ann", "old").await.unwrap();
    std::fs::write(guarded.file.path(), "ann:new\n").unwrap();
    guarded.server.reload();
    wait::until("the new password", 300, async || {
        guarded.login("ann", "new").await.map(drop).map_err(|e| e.to_string())
    })
    .await
    .unwrap();
    assert!(matches!(guarded.login("ann", "old").await.unwrap_err(), Error::LoginRefused));
    before.version().await.expect("it is logged in already");
}

#[tokio::test]
async fn a_server_without_passwords_lets_anybody_in() {
    let server = Server::start(&[]).await.unwrap();
    let credentials = Credentials::new("ann", "secret").unwrap();
    // To this server the login is a value like any other.
    endpoint(server.address()).with_credentials(credentials).connect().await.unwrap().version().await.unwrap();
}
