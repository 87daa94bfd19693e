//! Detection of containers, and of WSL.

use std::{env, fs, path::Path};

/// The kind of machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind {
    /// Which container this runs in, and how that is known.
    pub(super) container: Option<(String, &'static str)>,
    /// Which WSL this is: 1 or 2.
    pub(super) wsl: Option<u8>,
}

/// The marks of containers.
#[derive(Clone, Debug, Default)]
struct Signs {
    /// `/.dockerenv` is there.
    dockerenv: bool,
    /// The content of `/run/.containerenv`.
    containerenv: Option<String>,
    /// The variable `container`, or `/run/systemd/container`.
    named: Option<String>,
    /// The variable `KUBERNETES_SERVICE_HOST` is set.
    kubernetes: bool,
    /// `/proc/1/cgroup`.
    cgroup: String,
    /// `/proc/sys/kernel/osrelease`.
    release: String,
}

pub(super) fn look() -> Kind {
    let read = |path: &str| fs::read_to_string(path).ok();
    let named = env::var("container").ok().or_else(|| read("/run/systemd/container"));
    let signs = Signs {
        dockerenv: Path::new("/.dockerenv").exists(),
        containerenv: read("/run/.containerenv"),
        named: named.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()),
        kubernetes: env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        cgroup: read("/proc/1/cgroup").unwrap_or_default(),
        release: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
    };
    Kind { container: signs.container(), wsl: signs.wsl() }
}

impl Signs {
    fn container(&self) -> Option<(String, &'static str)> {
        // Parts of paths in which engines put their groups.
        const GROUPS: [(&str, &str); 7] = [
            ("kubepods", "kubernetes"),
            ("libpod", "podman"),
            ("docker", "docker"),
            ("containerd", "containerd"),
            ("crio-", "cri-o"),
            ("lxc", "lxc"),
            ("machine.slice/machine-", "systemd-nspawn"),
        ];
        let of_group = GROUPS.iter().find(|(part, _)| {
            let mut paths = self.cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
            paths.any(|path| path.split('/').any(|name| name.starts_with(part)))
        });
        if self.kubernetes {
            return Some(("kubernetes".to_owned(), "KUBERNETES_SERVICE_HOST"));
        }
        if let Some(text) = &self.containerenv {
            // `engine="podman-5.2.3"`; empty without privileges.
            let engine = text.lines().find_map(|line| line.strip_prefix("engine="));
            let engine = engine.map_or("podman", |engine| engine.trim_matches('"'));
            return Some((engine.to_owned(), "/run/.containerenv"));
        }
        if self.dockerenv {
            return Some(("docker".to_owned(), "/.dockerenv"));
        }
        if let Some(name) = &self.named {
            return Some((name.clone(), "the variable `container`"));
        }
        of_group.map(|(_, engine)| ((*engine).to_owned(), "/proc/1/cgroup"))
    }

    fn wsl(&self) -> Option<u8> {
        if self.release.contains("microsoft-standard") || self.release.contains("WSL2") {
            return Some(2);
        }
        self.release.contains("Microsoft").then_some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(signs: &Signs) -> Option<String> {
        signs.container().map(|(name, _)| name)
    }

    /// The marks of containers, on systems that can't be had here.
    #[test]
    fn containers_are_known_by_their_marks() {
        let bare = Signs { cgroup: "0::/init.scope\n".to_owned(), ..Signs::default() };
        assert_eq!(named(&bare), None);
        let of = |cgroup: &str| Signs { cgroup: cgroup.to_owned(), ..Signs::default() };
        for (cgroup, name) in [
            ("12:pids:/docker/3ab1\n0::/docker/3ab1\n", Some("docker")),
            ("0::/system.slice/docker-3ab1.scope\n", Some("docker")),
            ("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope\n", Some("kubernetes")),
            ("0::/machine.slice/libpod-3ab1.scope/container\n", Some("podman")),
            ("1:name=systemd:/lxc/web\n", Some("lxc")),
            ("0::/\n", None),
            ("0::/user.slice/user-1000.slice/session-docker.scope\n", None),
        ] {
            assert_eq!(named(&of(cgroup)).as_deref(), name, "{cgroup}");
        }
        let podman = Some("engine=\"podman-5.2.3\"\nname=\"x\"\n".to_owned());
        let podman = Signs { containerenv: podman, ..Signs::default() };
        assert_eq!(named(&podman).as_deref(), Some("podman-5.2.3"));
        let rootless = Signs { containerenv: Some(String::new()), ..Signs::default() };
        assert_eq!(named(&rootless).as_deref(), Some("podman"));
        let docker = Signs { dockerenv: true, ..Signs::default() };
        assert_eq!(named(&docker).as_deref(), Some("docker"));
        // A pod has its engine's marks, too.
        let pod = Signs { kubernetes: true, ..docker };
        assert_eq!(named(&pod).as_deref(), Some("kubernetes"));
    }

    #[test]
    fn wsl_is_known_by_its_kernel() {
        for (release, wsl) in [
            ("6.6.87.2-microsoft-standard-WSL2\n", Some(2)),
            ("4.4.0-19041-Microsoft\n", Some(1)),
            ("6.8.0-49-generic\n", None),
        ] {
            let signs = Signs { release: release.to_owned(), ..Signs::default() };
            assert_eq!(signs.wsl(), wsl, "{release}");
        }
    }
}
