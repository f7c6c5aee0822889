//! Erasure coding policies, as the image holds them. No path has one yet.

use super::super::{Answer, EMPTY, decode, message, superuser};
use super::Request;
use ::blocks::ReportKind;
use hadoop_proto::fsimage::ErasureCodingSection;
use hadoop_proto::hdfs::{
    CodecProto, EcTopologyVerifierResultProto, ErasureCodingPolicyProto, ErasureCodingPolicyState,
    GetEcTopologyResultForPoliciesRequestProto, GetEcTopologyResultForPoliciesResponseProto,
    GetErasureCodingCodecsResponseProto, GetErasureCodingPoliciesResponseProto, GetErasureCodingPolicyRequestProto,
};
use ops::View;
use ops::read::zones::get_erasure_coding_policy;
use prost::Message;
use vocab::Refusal;

/// Ids up to this are those of built-in policies, which clients know by id.
const BUILT_IN_MAX: u32 = 63;
/// Codecs with the coders that a Java name node names, first choice first.
const CODECS: [(&str, &str); 3] =
    [("rs", "rs_native, rs_java"), ("rs-legacy", "rs-legacy_java"), ("xor", "xor_native, xor_java")];

/// All policies by name, in their present states.
fn all(view: &View<'_>) -> Result<Vec<ErasureCodingPolicyProto>, Refusal> {
    let broken = |error| Refusal::io(format!("The section of erasure coding policies cannot be read: {error}"));
    let built_in = ErasureCodingSection::decode(&*storage::image::built_in_policies()).map_err(broken)?.policies;
    let mut policies = match &view.state.preserved.erasure_coding_section {
        Some(section) => ErasureCodingSection::decode_length_delimited(&section[..]).map_err(broken)?.policies,
        None => built_in.clone(),
    };
    for policy in &mut policies {
        // a Java name node saves of the built-in ones no more than id and state
        if let Some(known) = built_in.iter().find(|known| known.id == policy.id && policy.schema.is_none()) {
            *policy = ErasureCodingPolicyProto { state: policy.state, ..known.clone() };
        }
        if policy.name() == &*view.settings.erasure_coding_default {
            policy.state = Some(ErasureCodingPolicyState::Enabled as i32);
        }
    }
    policies.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(policies)
}

pub(super) fn policies(request: &Request<'_>) -> Answer {
    let mut ec_policies = request.read(all)?;
    for policy in ec_policies.iter_mut().filter(|policy| policy.id <= BUILT_IN_MAX) {
        *policy = ErasureCodingPolicyProto { id: policy.id, state: policy.state, ..Default::default() };
    }
    message(&GetErasureCodingPoliciesResponseProto { ec_policies })
}

pub(super) fn policy_of_path(request: &Request<'_>) -> Answer {
    let asked: GetErasureCodingPolicyRequestProto = decode(request.body.clone())?;
    request.read(|v| get_erasure_coding_policy(v, asked.src.as_bytes()))?;
    Ok(EMPTY)
}

pub(super) fn codecs(request: &Request<'_>) -> Answer {
    request.read(|_| Ok(()))?;
    let codec = |(codec, coders): (&str, &str)| CodecProto { codec: codec.to_owned(), coders: coders.to_owned() };
    message(&GetErasureCodingCodecsResponseProto { codec: CODECS.map(codec).to_vec() })
}

/// Whether DataNodes and racks suffice for policies; for the enabled ones if none is named.
pub(super) fn topology_result(request: &Request<'_>) -> Answer {
    let asked: GetEcTopologyResultForPoliciesRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "getECTopologyResultForPolicies")?;
    let (wanted, nodes, racks) = request.read(|v| {
        let blocks = &v.state.blocks;
        Ok((wanted(&asked.policies, all(v)?)?, blocks.datanode_report(ReportKind::Live).len(), blocks.racks().count()))
    })?;
    let (result_message, is_supported) = verify(&wanted, nodes as u32, racks as u32);
    let response = EcTopologyVerifierResultProto { result_message, is_supported };
    message(&GetEcTopologyResultForPoliciesResponseProto { response })
}

/// The policies that a question is about.
fn wanted(names: &[String], all: Vec<ErasureCodingPolicyProto>) -> Result<Vec<ErasureCodingPolicyProto>, Refusal> {
    if names.is_empty() {
        return Ok(all.into_iter().filter(|p| p.state() == ErasureCodingPolicyState::Enabled).collect());
    }
    let find = |name: &String| {
        let text = || format!("The given erasure coding policy {name} does not exist.");
        all.iter().find(|p| p.name() == name).cloned().ok_or_else(|| Refusal::HadoopIllegalArgument(text().into()))
    };
    names.iter().map(find).collect()
}

/// The verdict, in the words of `ECTopologyVerifier`.
fn verify(policies: &[ErasureCodingPolicyProto], nodes: u32, racks: u32) -> (String, bool) {
    let (mut nodes_wanted, mut racks_wanted) = (0, 0);
    for schema in policies.iter().filter_map(|p| p.schema.as_ref()) {
        let units = schema.data_units.saturating_add(schema.parity_units);
        nodes_wanted = nodes_wanted.max(units);
        racks_wanted = racks_wanted.max(units.div_ceil(schema.parity_units.max(1)));
    }
    let names = policies.iter().map(ErasureCodingPolicyProto::name).collect::<Vec<_>>().join(", ");
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
