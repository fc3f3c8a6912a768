//! Models that steps of tasks want by name.

use gnoma_core::{
    ModelRef,
    protocol::{RequestError, RequestErrorKind},
    suggest::{find_model, nearest_name},
};
use gnoma_extend::tasks::{StepKind, TaskPlan};

use crate::{Project, Result, preview};

/// Refuses a plan whose prompts want a model that a session of the project would not have. Asks servers of this machine
/// which models they have, and no others.
///
/// # Errors
/// The first model that there is not.
pub async fn check_models(project: &Project, plan: &TaskPlan) -> Result<()> {
    let prompts = plan.steps.iter().filter(|step| step.kind() == StepKind::Prompt);
    let wanted: Vec<String> = prompts.filter_map(|step| step.model.clone()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    // Without any model, a run says what to do.
    let Ok(mut ready) = preview::prepare_preview(project, None).await else { return Ok(()) };
    ready.discover_once().await;
    let known: Vec<ModelRef> = ready.routes.arms().iter().map(|arm| arm.id.clone()).collect();
    unknown_model(&known, &wanted).map_or(Ok(()), |error| Err(error.into()))
}

/// Returns the refusal of a run whose steps want a model that is not in its session. Where no model is known yet, any
/// may be.
pub(crate) fn unknown_model(known: &[ModelRef], wanted: &[String]) -> Option<RequestError> {
    let is_unknown = |name: &&String| find_model(name, known.iter()).is_none();
    let name = wanted.iter().find(is_unknown).filter(|_| !known.is_empty())?;
    let cause =
        format!("a step wants the model `{name}`, which is not in this session; nothing was run");
    let remedy = match nearest_name(name, known.iter().map(|arm| arm.model.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`gnoma models` lists the models".to_owned(),
    };
    Some(RequestError::new(RequestErrorKind::Invalid, cause).with_remedy(remedy))
}
