//! Erasure coding policies: the table of them, and those of directories.

use super::super::convert::erasure_coding as convert;
use super::super::{Answer, EMPTY, Writing, decode, message, superuser};
use super::Request;
use ::blocks::ReportKind;
use hadoop_proto::hdfs::{
    AddErasureCodingPoliciesRequestProto, AddErasureCodingPoliciesResponseProto, AddErasureCodingPolicyResponseProto,
    CodecProto, DisableErasureCodingPolicyRequestProto, EcTopologyVerifierResultProto,
    EnableErasureCodingPolicyRequestProto, ErasureCodingPolicyProto, GetEcTopologyResultForPoliciesRequestProto,
    GetEcTopologyResultForPoliciesResponseProto, GetErasureCodingCodecsResponseProto,
    GetErasureCodingPoliciesResponseProto, GetErasureCodingPolicyRequestProto, GetErasureCodingPolicyResponseProto,
    RemoveErasureCodingPolicyRequestProto, SetErasureCodingPolicyRequestProto, UnsetErasureCodingPolicyRequestProto,
};
use observe::RemoteException;
use ops::read::erasure_coding as read;
use ops::write::erasure_coding as write;
use vocab::Refusal;
use vocab::erasure_coding::{CODECS, ErasureCodingPolicy, PolicyState, REPLICATION, REPLICATION_NAME, Units};

pub(super) fn policies(request: &Request<'_>) -> Answer {
    let all = request.read(read::get_erasure_coding_policies)?;
    let ec_policies = all.iter().map(convert::policy_with_state).collect();
    message(&GetErasureCodingPoliciesResponseProto { ec_policies })
}

pub(super) fn policy_of_path(request: &Request<'_>) -> Answer {
    let asked: GetErasureCodingPolicyRequestProto = decode(request.body.clone())?;
    let found = request.read(|v| read::get_erasure_coding_policy(v, asked.src.as_bytes()))?;
    message(&GetErasureCodingPolicyResponseProto { ec_policy: found.as_ref().map(convert::policy) })
}

pub(super) fn codecs(request: &Request<'_>) -> Answer {
    request.read(|v| v.check_erasure_coding("getErasureCodingCodecs"))?;
    let codec = |(codec, coders): (&str, &str)| CodecProto { codec: codec.to_owned(), coders: coders.to_owned() };
    message(&GetErasureCodingCodecsResponseProto { codec: CODECS.map(codec).to_vec() })
}

pub(super) fn add(request: &Request<'_>) -> Writing {
    let asked: AddErasureCodingPoliciesRequestProto = decode(request.body.clone())?;
    let policies = asked.ec_policies.iter().map(convert::new_policy).collect::<Result<_, Refusal>>()?;
    let response = |(result, asked): (Result<ErasureCodingPolicy, Refusal>, ErasureCodingPolicyProto)| match result {
        Ok(added) => {
            AddErasureCodingPolicyResponseProto { policy: convert::policy(&added), succeed: true, error_msg: None }
        }
        Err(refusal) => AddErasureCodingPolicyResponseProto {
            policy: asked,
            succeed: false,
            error_msg: Some(RemoteException::from(refusal).message),
        },
    };
    request.write(write::AddErasureCodingPolicies { policies }, |results| {
        let responses = results.into_iter().zip(asked.ec_policies).map(response).collect();
        message(&AddErasureCodingPoliciesResponseProto { responses })
    })
}

pub(super) fn remove(request: &Request<'_>) -> Writing {
    let asked: RemoveErasureCodingPolicyRequestProto = decode(request.body.clone())?;
    request.write(write::RemoveErasureCodingPolicy { name: asked.ec_policy_name.into() }, |_| Ok(EMPTY))
}

pub(super) fn enable(request: &Request<'_>) -> Writing {
    let asked: EnableErasureCodingPolicyRequestProto = decode(request.body.clone())?;
    request.write(write::EnableErasureCodingPolicy { name: asked.ec_policy_name.into() }, |_| Ok(EMPTY))
}

pub(super) fn disable(request: &Request<'_>) -> Writing {
    let asked: DisableErasureCodingPolicyRequestProto = decode(request.body.clone())?;
    request.write(write::DisableErasureCodingPolicy { name: asked.ec_policy_name.into() }, |_| Ok(EMPTY))
}

pub(super) fn set(request: &Request<'_>) -> Writing {
    let asked: SetErasureCodingPolicyRequestProto = decode(request.body.clone())?;
    let policy = asked.ec_policy_name.map(Into::into);
    request.write(write::SetErasureCodingPolicy { path: asked.src.into_bytes(), policy }, |_| Ok(EMPTY))
}

pub(super) fn unset(request: &Request<'_>) -> Writing {
    let asked: UnsetErasureCodingPolicyRequestProto = decode(request.body.clone())?;
    request.write(write::UnsetErasureCodingPolicy { path: asked.src.into_bytes() }, |_| Ok(EMPTY))
}

/// Whether DataNodes and racks suffice for policies; for the enabled ones if none is named.
pub(super) fn topology_result(request: &Request<'_>) -> Answer {
    let asked: GetEcTopologyResultForPoliciesRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "getECTopologyResultForPolicies")?;
    let (wanted, nodes, racks) = request.read(|v| {
        let blocks = &v.state.blocks;
        Ok((
            wanted(&asked.policies, read::policies(v))?,
            blocks.datanode_report(ReportKind::Live).len(),
            blocks.racks().count(),
        ))
    })?;
    let (result_message, is_supported) = verify(&wanted, nodes as u32, racks as u32);
    let response = EcTopologyVerifierResultProto { result_message, is_supported };
    message(&GetEcTopologyResultForPoliciesResponseProto { response })
}

/// The policies that a question is about.
fn wanted(names: &[String], all: Vec<ErasureCodingPolicy>) -> Result<Vec<ErasureCodingPolicy>, Refusal> {
    if names.is_empty() {
        return Ok(all.into_iter().filter(|p| p.state == PolicyState::Enabled).collect());
    }
    // as Hadoop has it: one block and two copies, by a name of any case
    let replication = || {
        let units = Units { data: 1, parity: 2 };
        let policy = ErasureCodingPolicy::new(REPLICATION, REPLICATION_NAME, units, 1 << 20, Vec::new());
        ErasureCodingPolicy { name: REPLICATION_NAME.into(), ..policy }
    };
    let find = |name: &String| {
        if name.eq_ignore_ascii_case(REPLICATION_NAME) {
            return Ok(replication());
        }
        let text = || format!("The given erasure coding policy {name} does not exist.");
        all.iter().find(|p| *p.name == **name).cloned().ok_or_else(|| Refusal::HadoopIllegalArgument(text().into()))
    };
    names.iter().map(find).collect()
}

/// The verdict, in the words of `ECTopologyVerifier`.
fn verify(policies: &[ErasureCodingPolicy], nodes: u32, racks: u32) -> (String, bool) {
    let (mut nodes_wanted, mut racks_wanted) = (0, 0);
    for stripe in policies.iter().map(|p| p.stripe) {
        let units = u32::from(stripe.units());
        nodes_wanted = nodes_wanted.max(units);
        racks_wanted = racks_wanted.max(units.div_ceil(u32::from(stripe.parity_units.max(1))));
    }
    let names = policies.iter().map(|p| &*p.name).collect::<Vec<_>>().join(", ");
    let lacking = |wanted: u32, what: &str, there: u32| {
        format!(
            "{wanted} {what} are required for the erasure coding policies: {names}. The number of {what} is only {there}."
        )
    };
    match () {
        () if policies.is_empty() => ("No erasure coding policy is given.".to_owned(), true),
        () if nodes < nodes_wanted => (lacking(nodes_wanted, "DataNodes", nodes), false),
        () if racks < racks_wanted => (lacking(racks_wanted, "racks", racks), false),
        () => (format!("The cluster setup can support EC policies: {names}"), true),
    }
}
