//! `kinora doctor`: checks everything that the service depends on, changes nothing, and explains
//! how to fix problems. It fails if the service could not keep its promises here.

mod disk;
mod engines;
mod report;
mod result_files;
mod secrets;
mod store;
mod surroundings;

use kinora_contract::Clock;

use crate::cli::ServeArgs;
use crate::config::Config;
use crate::failure::Failure;
use crate::folder;
use crate::output::print;
use crate::system::SystemClock;
use report::{Finding, report, summary};

/// Checks everything for a service with the same flags, and prints the findings.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let config = match Config::for_serving(args) {
        Ok(config) => config,
        Err(failure) => {
            print(&report(&[("configuration", failure.into())]));
            return Err(summary(1));
        }
    };
    let findings = check_all(&config);
    print(&report(&findings));
    let bad = findings
        .iter()
        .filter(|(_, found)| matches!(found, Finding::Bad(_)));
    match bad.count() {
        0 => Ok(()),
        count => Err(summary(count)),
    }
}

fn check_all(config: &Config) -> Vec<(&'static str, Finding)> {
    let mut findings = vec![
        ("configuration", configuration(config)),
        ("user", secrets::user()),
        ("data folder", disk::folder(&config.data)),
    ];
    findings.extend(secrets::first_key(&config.data).map(|found| ("first key", found)));
    findings.extend(store::check_store(config));
    findings.push((
        "backups",
        store::last_backup(&config.data, SystemClock.now_ms()),
    ));
    if let Some(folder) = folder::nearest_existing(&config.data) {
        findings.push(("file system", disk::file_system(&folder)));
        findings.push((
            "free space",
            disk::free_space(&folder, config.quota.free_bytes_min),
        ));
        findings.push(("links and syncs", disk::links_and_syncs(&folder)));
    }
    findings.extend(disk::other_disks(config));
    findings.extend(disk::quotas(config).map(|found| ("quotas", found)));
    findings.push(("clock", surroundings::clock(&config.data)));
    findings.push(("listen address", surroundings::listen(&config.listen)));
    findings.push(("open files", surroundings::open_files(config)));
    findings.push(("https and proxies", secrets::https(config)));
    findings.push(("result addresses", surroundings::base_url(config)));
    findings.extend(surroundings::references(config).map(|found| ("references", found)));
    findings.extend(surroundings::policy(config).map(|found| ("policy", found)));
    findings.extend(surroundings::film_signer(config).map(|found| ("signatures", found)));
    findings.push(("sandbox", engines::sandbox(config)));
    findings.push(("models", engines::models(config)));
    findings.extend(engines::slots(config).map(|found| ("slots", found)));
    findings.extend(engines::engines(config));
    findings.extend(engines::quarantined(config));
    findings
}

fn configuration(config: &Config) -> Finding {
    if config.removed.is_empty() {
        return Finding::Good("read; every key is known".to_owned());
    }
    Finding::Note(format!(
        "read; these settings were removed and have no effect, so delete them: {}",
        config.removed.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_fresh_place_is_found_good_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::defaults();
        config.data = folder.path().join("data");
        config.listen = "127.0.0.1:0".parse().unwrap();
        let findings = check_all(&config);
        let text = report(&findings);
        let bad = findings
            .iter()
            .any(|(_, found)| matches!(found, Finding::Bad(_)));
        assert!(!bad, "{text}");
        assert!(text.contains("storyboard"), "{text}");
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "{text}"
        );
    }

    #[test]
    fn disks_of_results_and_scratch_are_looked_at_where_they_are_others() {
        let (data, memory) = (tempfile::tempdir().unwrap(), Path::new("/dev/shm"));
        let mut config = Config::defaults();
        config.data = data.path().to_owned();
        let names = |config: &Config| -> Vec<_> {
            let found = disk::other_disks(config);
            found.into_iter().map(|(what, _)| what).collect()
        };
        assert_eq!(names(&config), [""; 0]);
        config.results.url = memory.join("absent/results").display().to_string();
        config.worker.scratch = memory.join("absent/work");
        if disk::is_another(memory, data.path()) {
            let all = ["results space", "results syncs", "scratch space"];
            assert_eq!(names(&config), all);
        }
        config.results.url = "s3://id:secret@host/bucket".to_owned();
        config.worker.scratch = "".into();
        let found = disk::other_disks(&config);
        assert!(matches!(&*found, [(_, Finding::Bad(why))] if !why.contains("secret")));
    }

    #[test]
    fn each_thing_that_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "no folder").unwrap();
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = Config::defaults();
        config.data = file;
        config.listen = taken.local_addr().unwrap().into();
        config.http.trusted_proxies = vec!["10.0.0.0/99".to_owned()];
        config.references.allow_networks = vec!["everywhere".to_owned()];
        config.base_url = "video.example.com".to_owned();
        config.models[0].engine = "steam".to_owned();
        let bad: Vec<&str> = check_all(&config)
            .iter()
            .filter(|(_, found)| matches!(found, Finding::Bad(_)))
            .map(|(what, _)| *what)
            .collect();
        let expected = [
            "data folder",
            "https and proxies",
            "result addresses",
            "references",
            "models",
        ];
        assert_eq!(bad, expected);
    }
}
