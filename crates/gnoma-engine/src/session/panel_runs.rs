//! Several arms for one answer, as a session runs them.
//!
//! A question that needs no tools is answered by all at once, in the turn's first call. Where tools are
//! needed the arm in charge looks first, with the tools that only read; then it and the others say, from
//! what was read, how they would go about it, and one way is taken. Only then is anything changed, by
//! one arm: whose way it is, or the arm in charge where the way is made of several.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use gnoma_core::{ErrorKind, Event, ModelRequest, ProviderError, Role, session::NoticeLevel};
use gnoma_router::{Arm, choice::PanelAuthors};

use super::state::{FrontEndGone, PendingWork, Session};
use crate::{
    call::CallInput,
    routing::{
        OWN,
        arm_panel::{self, Panel, Shares},
    },
    turn::FinishInput,
};

impl Session {
    /// Those who answer at once in the turn's first call, where several do.
    pub(super) fn first_call_panel(&self, request: &ModelRequest) -> Option<Panel> {
        let plan = self.router.plan.as_ref().filter(|plan| !plan.is_looking)?;
        let members = std::iter::once(&plan.arm).chain(&plan.beside).cloned().collect();
        self.panel_of(members, None, request.clone())
    }

    fn panel_of(
        &self,
        members: Vec<Arc<Arm>>,
        own: Option<(Arc<Arm>, String)>,
        request: ModelRequest,
    ) -> Option<Panel> {
        let plan = self.router.plan.as_ref()?;
        let (routes, context) = (&self.router.routes, self.router.moment_of(plan));
        let mut chairs = routes.with_state(|state| state.rank_reviewers(&plan.task, context, None));
        if chairs.is_empty() {
            chairs.push(plan.arm.clone());
        }
        Some(Panel {
            together: plan.panel_mode()?,
            members,
            own,
            chairs,
            request,
            question: arm_panel::question_of(self.turn.history()),
            shares: Shares::default(),
            account: self.account(),
        })
    }

    /// The arm in charge has looked: the others are asked what they would do.
    pub(super) fn start_panel(&mut self) {
        self.look_for_paths();
        let routes = &self.router.routes;
        let free = || FinishInput::Conferred { note: arm_panel::FREE.to_owned() }.into();
        let Some(plan) = &self.router.plan else { return self.inbox.push_back(free()) };
        // What the first has opened is not for everybody.
        let now_ms = routes.now_ms();
        let may_see = |arm: &&Arc<Arm>| {
            routes.with_state(|state| state.kept_from(&arm.id, &plan.task, now_ms)).is_none()
        };
        let beside: Vec<Arc<Arm>> = plan.beside.iter().filter(may_see).cloned().collect();
        let arm = plan.arm.clone();
        if beside.is_empty() {
            let text = "no other model may see the files that were opened";
            let nobody = Err(ProviderError::new(ErrorKind::NotFound, OWN, text));
            self.wait_for(async { PendingWork::Conferred(nobody, Shares::default()) });
            return;
        }
        let mut request = self.build_request(&arm);
        let answer = request.messages.iter().rposition(|it| it.role() == Role::Assistant);
        // Nobody is led by what the first has said.
        let own = answer.map(|at| request.messages.remove(at).text_content());
        let own = own.filter(|text| !text.trim().is_empty()).map(|text| (arm, text));
        let Some(panel) = self.panel_of(beside, own, request) else {
            return self.inbox.push_back(free());
        };
        self.wait_for(async move {
            let shares = panel.shares.clone();
            let way = AssertUnwindSafe(arm_panel::panel_answer(&panel)).catch_unwind().await;
            let broken = |_panic| {
                let text = "the comparison crashed";
                Err(ProviderError::new(ErrorKind::Protocol, OWN, text))
            };
            PendingWork::Conferred(way.unwrap_or_else(broken), shares)
        });
    }

    /// Goes on with the way that was taken; `None`: there is none, and each is free.
    pub(super) async fn finish_panel(
        &mut self,
        way: Option<String>,
        shares: &Shares,
    ) -> Result<(), FrontEndGone> {
        let by = self.tell_conferred(shares).await?.and_then(|conferred| conferred.chair);
        if let Some(plan) = &mut self.router.plan {
            plan.is_looking = false;
            plan.why = "follows the chosen approach".to_owned();
        }
        let note = match way {
            Some(way) => arm_panel::chosen_proposal_note(&way, by.as_ref()),
            None => arm_panel::FREE.to_owned(),
        };
        self.inbox.push_back(FinishInput::Conferred { note }.into());
        Ok(())
    }

    /// The panel of the current call has its answer: its author is announced before its text.
    pub(super) async fn panel_answered(&mut self) -> Result<(), FrontEndGone> {
        let Some(shares) = self.spending.call.as_ref().and_then(|call| call.shares.clone()) else {
            return Ok(());
        };
        if let Some(conferred) = self.tell_conferred(&shares).await? {
            self.inbox.push_back(CallInput::Authored(conferred.author).into());
        }
        Ok(())
    }

    /// Tells who had a hand in an answer, who failed at it, and what that took.
    async fn tell_conferred(
        &mut self,
        shares: &Shares,
    ) -> Result<Option<PanelAuthors>, FrontEndGone> {
        let conferred = shares.take_panel_result();
        for text in shares.take_failures() {
            self.send_event(Event::Notice { level: NoticeLevel::Warning, text }).await?;
        }
        if let Some(PanelAuthors { members, chair, author, .. }) = conferred.clone() {
            self.send_event(Event::Conferred { members, chair, author }).await?;
        }
        self.tell_costs(shares.take_shares()).await?;
        if let (Some(plan), Some(conferred)) = (&mut self.router.plan, &conferred) {
            let author = self.router.routes.find_arm(&conferred.author);
            plan.record_panel(conferred, author);
        }
        Ok(conferred)
    }
}
