//! A signed control event on the wire.

use syscap_format::{cbor::MapBuilder, control::Control, object::PolicyObject, record::Kind};

use super::{
    message::{definitions, names, read_definitions, read_tool},
    wire::{Broken, Fields, list},
};
use crate::{
    submit::{Beside, Submission},
    tools::DELEGATED_MAX,
};

impl Submission {
    pub(super) fn write(&self, map: MapBuilder) -> MapBuilder {
        let map = map.uint("kind", self.kind.code()).bytes("control", &self.control.to_bytes());
        match &self.beside {
            Beside::Nothing => map,
            Beside::Policy(object) => map.bytes("policy", &object.to_bytes()),
            Beside::Accepted(tools) => map.item("accepted", definitions(tools).item()),
            Beside::Forgotten(tools) => map.item("forgotten", names(tools).item()),
            Beside::OwnTools => map.boolean("own_tools", true),
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Broken> {
        let kind = Kind::from_code(fields.uint("kind")?).ok_or(Broken::Form)?;
        let control = Control::from_bytes(fields.bytes("control")?).map_err(|_| Broken::Form)?;
        let beside = if let Some(object) = fields.maybe("policy") {
            let bytes = object.as_byte_string().ok_or(Broken::Form)?;
            let object = PolicyObject::from_bytes(bytes).map_err(|_| Broken::Form)?;
            Beside::Policy(Box::new(object))
        } else if let Some(tools) = fields.maybe("accepted") {
            Beside::Accepted(read_definitions(tools)?)
        } else if let Some(tools) = fields.maybe("forgotten") {
            Beside::Forgotten(list(tools, DELEGATED_MAX, read_tool)?)
        } else if let Some(own) = fields.maybe("own_tools") {
            own.as_bool().filter(|own| *own).ok_or(Broken::Form)?;
            Beside::OwnTools
        } else {
            Beside::Nothing
        };
        Ok(Self { kind, control, beside })
    }
}
