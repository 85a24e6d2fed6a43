//! Steps with their own VNIs, from a pool that their job makes of its VNIs, and in addition the
//! job's VNI: what Slurm's `stepmgr` and `job_vni` do.

mod common;

use common::{Arguments, MockNode, Said, command};

/// Runs commands with a pool, on a node.
struct With<'a>(&'a MockNode, &'static str);

impl With<'_> {
    fn cxi(&self, arguments: &(impl Arguments + ?Sized)) -> Said {
        let mut command = command(arguments);
        let command = command.env("CXI_POOL_FILE", self.0.directory().join(self.1));
        let output = command.env("CXI_MOCK", self.0.file()).output();
        output.unwrap().into()
    }

    fn reserve(&self, job: &str) -> String {
        self.cxi(&["vni", "reserve", job]).done().trim().to_owned()
    }

    fn prolog(&self, step: &str, vnis: &str) -> String {
        let prolog = ["job", "prolog", "--uid=1000", "--cores=2", "--no-tles"];
        self.cxi(&[&prolog[..], &["--job", step, "--vni", vnis]].concat()).done();
        let env = self.cxi(&["job", "env", "--job", step]).done();
        env.lines().next().unwrap().to_owned()
    }
}

#[test]
fn steps_have_vnis_of_their_own_and_share_that_of_their_job() {
    let node = MockNode::new();
    let (cluster, job) = (With(&node, "cluster.json"), With(&node, "17.json"));
    cluster.cxi("vni configure 1024-1029").done();
    let for_steps = ["vni", "reserve", "17", "--for-steps=3"];
    for _again in 0..2 {
        cluster.cxi(&for_steps).prints("1024-1026\n");
    }
    let short = "error: failed to reserve 4 VNIs for steps: 3 available, 3 reserved by jobs";
    cluster.cxi("vni reserve 18 --for-steps=4").refused(7, short);
    assert_eq!(cluster.cxi("vni reserve 18 --for-steps=0").code, 2);

    job.cxi("vni configure 1024-1026").done();
    assert_eq!(job.reserve("17"), "1024");
    assert_eq!(job.reserve("17.0"), "1025");
    assert_eq!(job.reserve("17.1"), "1026");
    let third = job.cxi("vni reserve 17.2");
    assert_eq!(third.code, 7, "as many steps at a time as there are VNIs");
    for (step, vnis) in [("17.0", "1025,1024"), ("17.1", "1026,1024")] {
        let expected = format!("export SLINGSHOT_VNIS={vnis}");
        assert_eq!(job.prolog(step, vnis), expected);
    }

    // When one step ends, the other one keeps its services.
    let gone = job.cxi("job epilog --job=17.0").done();
    let destroyed = gone.matches("VNIs 1025,1024): destroyed");
    assert_eq!(destroyed.count(), 2, "{gone}");
    job.cxi("vni release 17.0 --nodes=n1").done();
    job.cxi("vni confirm 17.0 --node=n1").done();
    assert_eq!(job.reserve("17.2"), "1025");
    let list = job.cxi("--json service list").json();
    assert_eq!(list["services"].as_array().unwrap().len(), 4);

    // The job's VNIs are free when its nodes have confirmed, whatever the state of its own pool.
    cluster.cxi("vni release 17 --nodes=n1").done();
    assert_eq!(cluster.cxi("vni reserve 18 --for-steps=4").code, 7);
    cluster.cxi("vni confirm 17 --node=n1").done();
    cluster.cxi("vni reserve 18 --for-steps=6").done();
}
