//! Several arms for one answer, as a session runs them.
//!
//! A question that needs no tools is answered by all at once, in the turn's first call. Where tools are
//! needed the arm in charge looks first, with the tools that only read; then it and the others say, from
//! what was read, how they would go about it, and one way is taken. Only then is anything changed, by
//! one arm: whose way it is, or the arm in charge where the way is made of several.

use gnoma_core::{
    ErrorKind, Event, ModelRequest, ProviderError, Role,
    session::{NoticeLevel, Outcome},
};

use super::{Came, Closed, Session, Way};
use crate::{
    arm::Arm,
    routing::{
        OWN,
        several::{self, Conferred, Panel, Shares},
    },
    turn::{Checked, Input},
};

impl Way {
    /// Whether the arm in charge only looks yet.
    pub(in crate::session) fn is_looking(&self) -> bool {
        self.course.as_ref().is_some_and(|course| course.is_looking)
    }
}

impl Session {
    /// Those who answer at once in the turn's first call, where several do.
    pub(super) fn panel(&self, request: &ModelRequest) -> Option<Panel> {
        let course = self.way.course.as_ref().filter(|course| !course.is_looking)?;
        let members = std::iter::once(&course.arm).chain(&course.beside).cloned().collect();
        self.panel_of(members, None, request.clone())
    }

    fn panel_of(
        &self,
        members: Vec<Arm>,
        own: Option<(Arm, String)>,
        request: ModelRequest,
    ) -> Option<Panel> {
        let course = self.way.course.as_ref()?;
        let mut chairs = self.way.routes.reviewers(&course.task, self.way.moment_of(course), None);
        if chairs.is_empty() {
            chairs.push(course.arm.clone());
        }
        Some(Panel {
            together: course.together()?,
            members,
            own,
            chairs,
            request,
            question: several::question_of(self.turn.history()),
            shares: Shares::default(),
            account: self.way.account(&self.firewall),
        })
    }

    /// The arm in charge has looked: the others are asked what they would do.
    pub(super) fn confer(&mut self, outcome: &Outcome) {
        self.look_for_paths();
        let routes = &self.way.routes;
        // What the first has opened is not for everybody.
        let looked = self.way.course.as_ref().map(|course| {
            let may_see = |arm: &&Arm| routes.kept_from(&arm.name(), &course.task).is_none();
            let beside: Vec<Arm> = course.beside.iter().filter(may_see).cloned().collect();
            (course.arm.clone(), beside)
        });
        let (Some((arm, beside)), Outcome::Complete { .. }) = (looked, outcome) else {
            return self.inbox.push_back(Input::Checked(Checked::Deliver));
        };
        if beside.is_empty() {
            let text = "nobody else may see what was opened";
            let nobody = Err(ProviderError::new(ErrorKind::NotFound, OWN, text));
            self.way.checking.spawn(async { Came::Conferred(nobody, Shares::default()) });
            return;
        }
        let mut request = self.request(&arm, self.way.asked.0);
        let answer = request.messages.iter().rposition(|it| it.role() == Role::Assistant);
        // Nobody is led by what the first has said.
        let own = answer.map(|at| request.messages.remove(at).text_content());
        let own = own.filter(|text| !text.trim().is_empty()).map(|text| (arm, text));
        let Some(panel) = self.panel_of(beside, own, request) else { return };
        self.way.checking.spawn(async move {
            let shares = panel.shares.clone();
            Came::Conferred(several::confer(&panel).await, shares)
        });
    }

    /// Goes on with the way that was taken; `None`: there is none, and each is free.
    pub(super) async fn conferred(
        &mut self,
        way: Option<String>,
        shares: &Shares,
    ) -> Result<(), Closed> {
        let by = self.tell_conferred(shares).await?.and_then(|conferred| conferred.chair);
        if let Some(course) = &mut self.way.course {
            course.is_looking = false;
            course.why = "goes the way that was taken".to_owned();
        }
        let note = match way {
            Some(way) => several::chosen(&way, by.as_ref()),
            None => several::FREE.to_owned(),
        };
        self.inbox.push_back(Input::Checked(Checked::Again { note }));
        Ok(())
    }

    /// The panel of the call under way has its answer: whose it is is told before the words are.
    pub(in crate::session) async fn panel_answered(&mut self) -> Result<(), Closed> {
        let Some(shares) = self.way.call.as_ref().and_then(|call| call.shares.clone()) else {
            return Ok(());
        };
        if let Some(conferred) = self.tell_conferred(&shares).await? {
            self.turn.answered_by(conferred.author, false);
        }
        Ok(())
    }

    /// Tells who had a hand in an answer, who failed at it, and what that took.
    async fn tell_conferred(&mut self, shares: &Shares) -> Result<Option<Conferred>, Closed> {
        let conferred = shares.conferred();
        for text in shares.failures() {
            self.tell(Event::Notice { level: NoticeLevel::Warning, text }).await?;
        }
        if let Some(Conferred { members, chair, author, .. }) = conferred.clone() {
            self.tell(Event::Conferred { members, chair, author }).await?;
        }
        self.tell_costs(shares.take()).await?;
        if let (Some(course), Some(conferred)) = (&mut self.way.course, &conferred) {
            let author = self.way.routes.arm(&conferred.author);
            course.conferred(conferred, author);
        }
        Ok(conferred)
    }
}
