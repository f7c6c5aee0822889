//! Erasure coding policies. Clients know the built-in ones by their numbers, so no more of them is sent.

use hadoop_proto::hdfs::{EcSchemaOptionEntryProto, EcSchemaProto, ErasureCodingPolicyProto, ErasureCodingPolicyState};
use ops::write::erasure_coding::NewPolicy;
use vocab::Refusal;
use vocab::erasure_coding::{ErasureCodingPolicy, PolicyState};

/// A policy as files and directories have it.
pub fn policy(policy: &ErasureCodingPolicy) -> ErasureCodingPolicyProto {
    let id = policy.id.into();
    if policy.is_built_in() {
        return ErasureCodingPolicyProto { id, ..Default::default() };
    }
    let option = |(key, value): &(std::sync::Arc<str>, std::sync::Arc<str>)| EcSchemaOptionEntryProto {
        key: key.to_string(),
        value: value.to_string(),
    };
    let schema = EcSchemaProto {
        codec_name: policy.codec.to_string(),
        data_units: policy.units.data.cast_unsigned(),
        parity_units: policy.units.parity.cast_unsigned(),
        options: policy.options.iter().map(option).collect(),
    };
    ErasureCodingPolicyProto {
        name: Some(policy.name.to_string()),
        schema: Some(schema),
        cell_size: Some(policy.stripe.cell_size),
        id,
        state: None,
    }
}

/// A policy with its state.
pub fn policy_with_state(with: &ErasureCodingPolicy) -> ErasureCodingPolicyProto {
    let state = match with.state {
        PolicyState::Disabled => ErasureCodingPolicyState::Disabled,
        PolicyState::Enabled => ErasureCodingPolicyState::Enabled,
        PolicyState::Removed => ErasureCodingPolicyState::Removed,
    };
    ErasureCodingPolicyProto { state: Some(state as i32), ..policy(with) }
}

/// A policy that a client wishes; of a built-in one the number says all.
///
/// # Errors
/// `IllegalArgument`: of any other all is needed.
pub fn new_policy(asked: &ErasureCodingPolicyProto) -> Result<NewPolicy, Refusal> {
    let built_in = ErasureCodingPolicy::built_in().find(|p| u32::from(p.id) == asked.id);
    let full = built_in.map(|p| ErasureCodingPolicyProto {
        cell_size: Some(p.stripe.cell_size),
        schema: Some(EcSchemaProto {
            codec_name: p.codec.to_string(),
            data_units: p.stripe.data_units.into(),
            parity_units: p.stripe.parity_units.into(),
            options: Vec::new(),
        }),
        ..Default::default()
    });
    let fields =
        [("name", asked.name.is_some()), ("schema", asked.schema.is_some()), ("cellsize", asked.cell_size.is_some())];
    if let (None, Some((missing, _))) = (&full, fields.iter().find(|(_, is_there)| !is_there)) {
        let text = format!("Missing {missing} field in ErasureCodingPolicy proto");
        return Err(Refusal::IllegalArgument(text.into()));
    }
    match asked.cell_size().cast_signed() {
        _ if full.is_some() => {}
        ..1 => return Err(Refusal::IllegalArgument("cellSize must be positive".into())),
        size if size % 1_024 != 0 => return Err(Refusal::IllegalArgument("cellSize must be 1024 aligned".into())),
        _ => {}
    }
    let asked = full.as_ref().unwrap_or(asked);
    let schema = asked.schema.clone().unwrap_or_default();
    Ok(NewPolicy {
        codec: schema.codec_name.into(),
        data_units: schema.data_units,
        parity_units: schema.parity_units,
        cell_size: asked.cell_size(),
        options: schema.options.into_iter().map(|o| (o.key.into(), o.value.into())).collect(),
    })
}
