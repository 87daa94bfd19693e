//! The operator's classes of a client's tools.

use syscap::format::EffectClass;

use crate::parse;

/// `CLASS=TOOL,TOOL*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassRule {
    /// As it was written.
    pub(super) text: String,
    class: EffectClass,
    tools: Vec<String>,
}

impl ClassRule {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let form = || "write CLASS=TOOL,TOOL*, a * only at the end".to_owned();
        let (class, tools) = text.split_once('=').ok_or_else(form)?;
        let class = parse::class(class).map_err(|error| error.to_string())?;
        let tools: Vec<String> = tools.split(',').map(str::to_owned).collect();
        let fine = |tool: &String| {
            !tool.is_empty() && !tool.strip_suffix('*').unwrap_or(tool).contains('*')
        };
        let text = text.to_owned();
        if tools.iter().all(fine) { Ok(Self { text, class, tools }) } else { Err(form()) }
    }

    /// How much it says of the name: an exact name says most.
    fn fits(&self, name: &str) -> Option<usize> {
        let fit = |tool: &String| match tool.strip_suffix('*') {
            Some(stem) => name.starts_with(stem).then_some(stem.len()),
            None => (name == tool).then_some(usize::MAX),
        };
        self.tools.iter().filter_map(fit).max()
    }
}

/// The class by the most specific rule about a tool; of two equally specific ones the stricter.
pub(super) fn class(rules: &[ClassRule], name: &str) -> Option<EffectClass> {
    let told = rules.iter().filter_map(|rule| rule.fits(name).map(|fit| (fit, rule.class)));
    told.max_by_key(|(fit, class)| (*fit, class.code())).map(|(_, class)| class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_rule_decides() {
        let rules = ["read=mcp__*,Peek", "irreversible=mcp__x__*", "external_write=Peek"];
        let rules = rules.map(|text| ClassRule::parse(text).unwrap());
        assert_eq!(class(&rules, "mcp__y__z"), Some(EffectClass::Read));
        assert_eq!(class(&rules, "mcp__x__z"), Some(EffectClass::Irreversible));
        assert_eq!(class(&rules, "Peek"), Some(EffectClass::ExternalWrite));
        assert_eq!(class(&rules, "Bash"), None);
        for text in ["", "read", "read=", "read=a,", "reed=a", "read=a*b", "read=**"] {
            ClassRule::parse(text).unwrap_err();
        }
    }
}
