//! Bad input gets one clear sentence that says what to do, and a non-zero exit.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const TESTBED: &str = env!("CARGO_BIN_EXE_testbed");

/// Runs a command that must fail; what it said.
fn refused(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "it did what it should have refused: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

fn testbed(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(TESTBED);
    command.args(arguments).env("TESTBED_HOME", home);
    command
}

#[test]
fn an_unknown_subcommand_is_named_and_help_is_pointed_at() {
    let home = tempfile::tempdir().unwrap();
    let said = refused(&mut testbed(home.path(), &["upp"]));
    assert!(said.contains("unrecognized subcommand 'upp'") && said.contains("--help"), "{said}");
}

#[test]
fn a_cluster_that_does_not_run_is_named_with_the_way_to_start_it() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [&["kubeconfig"][..], &["kubectl", "get", "pods"], &["logs", "etcd"]] {
        let said = refused(&mut testbed(home.path(), arguments));
        assert!(said.contains("no cluster named \"default\"") && said.contains("testbed up"), "{said}");
    }
}

#[test]
fn a_bad_name_is_refused_with_the_rule() {
    let home = tempfile::tempdir().unwrap();
    for name in ["../../etc", "Big", "", "a-name-that-is-far-too-long"] {
        let said = refused(&mut testbed(home.path(), &["up", "--shape", "control-plane", "--name", name]));
        assert!(said.contains("not a name for a cluster") && said.contains("a-z"), "{said}");
    }
}

#[test]
fn a_wrong_cache_directory_is_refused_with_the_variable() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for home in [file.path(), Path::new("relative/path"), Path::new("/proc/no-such-place")] {
        let said = refused(&mut testbed(home, &["status"]));
        assert!(said.contains("cannot use") && said.contains("TESTBED_HOME"), "{said}");
    }
}

#[test]
fn options_of_the_other_shape_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let said = refused(&mut testbed(home.path(), &["up", "--kwok"]));
    assert!(said.contains("--shape control-plane"), "{said}");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let arguments = ["up", "--shape", "control-plane", "--name", "port-in-use", "--api-port", &port];
    let said = refused(Command::new(TESTBED).args(arguments));
    assert!(said.contains(&format!("port {port} on 127.0.0.1 is in use")), "{said}");
    let status = Command::new(TESTBED).args(["status", "-o", "json"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&status.stdout).contains("port-in-use"), "nothing was left running");
}

#[test]
fn a_full_disk_is_refused_before_anything_is_built() {
    let home = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=20m none "$TESTBED_HOME" && exec "$0" install --for control-plane"#;
    // A file system of our own: as root, or in a user namespace where we are.
    let said = refused(
        Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", script, TESTBED])
            .env("TESTBED_HOME", home.path()),
    );
    assert!(said.contains("MiB free below") && said.contains("needs 200 MiB"), "{said}");
}

#[test]
fn missing_programs_are_listed_with_the_command_that_installs_them() {
    let home = tempfile::tempdir().unwrap();
    let said = refused(testbed(home.path(), &["install", "--for", "node"]).env("PATH", "/nonexistent"));
    assert!(said.contains("missing on this machine:") && said.contains("mmdebstrap"), "{said}");
    assert!(said.contains("apt-get install --no-install-recommends") && said.contains("util-linux"), "{said}");
}

#[test]
fn without_root_a_node_is_refused_and_the_other_shape_is_offered() {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = tempfile::tempdir().unwrap();
    // Where cargo builds, another user may not look.
    let copy = program.path().join("testbed");
    std::fs::copy(TESTBED, &copy).unwrap();
    std::fs::set_permissions(program.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--clear-groups", "--"]).arg(copy);
        command
    } else {
        Command::new(copy)
    };
    let said = refused(command.arg("up").env("TESTBED_HOME", home.path()));
    assert!(said.contains("needs root") && said.contains("--shape control-plane"), "{said}");
}

#[test]
fn an_archive_that_is_not_there_is_named() {
    let home = tempfile::tempdir().unwrap();
    let said = refused(&mut testbed(home.path(), &["load", "nowhere.tar"]));
    assert!(said.contains("nowhere.tar is no file"), "{said}");
}

#[test]
fn help_teaches_by_example() {
    let output = Command::new(TESTBED).arg("--help").output().unwrap();
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success());
    for line in ["Examples:", "testbed up", "testbed down", "TESTBED_HOME"] {
        assert!(help.contains(line), "{line} is missing in:\n{help}");
    }
    assert!(!help.contains("supervise"), "inner commands stay hidden");
}
