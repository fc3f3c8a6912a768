//! Walks the tree in the order it is written; a here-document comes with its redirection.

use super::{
    Arithmetic, ArrayElement, AssignedValue, Assignment, CaseArm, Command, CommandKind, Loop,
    Operation, Parameter, Pipeline, Redirection, Script, SimpleCommand, Span, Statement, Target,
    Test, Word, WordPart, WordPartKind,
};

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SyntaxNode<'a> {
    /// A list of statements.
    Script(&'a Script),
    /// One statement of a script.
    Statement(&'a Statement),
    /// One pipeline of a statement.
    Pipeline(&'a Pipeline),
    /// A command of any kind.
    Command(&'a Command),
    /// An arm of a `case`.
    CaseArm(&'a CaseArm),
    /// An assignment before a command.
    Assignment(&'a Assignment),
    /// A redirection of a command.
    Redirection(&'a Redirection),
    /// A here-document's body; stands outside of the redirection.
    HereBody(&'a Word),
    /// One word of a command.
    Word(&'a Word),
    /// An element of an array.
    Element(&'a ArrayElement),
    /// A piece of a word.
    Part(&'a WordPart),
    /// The text of a calculation.
    Arithmetic(&'a Arithmetic),
}

type NodeVisitor<'a, 'b> = &'b mut dyn FnMut(SyntaxNode<'a>);

impl Script {
    /// Shows this and everything in it.
    pub fn visit<'a>(&'a self, see: NodeVisitor<'a, '_>) {
        SyntaxNode::Script(self).visit(see);
    }

    /// Commands that name a program or test something, wherever they stand: simple ones with a word,
    /// `[[ ]]` and `(( ))`.
    #[must_use]
    pub fn simple_commands(&self) -> Vec<&Command> {
        let mut commands = Vec::new();
        self.visit(&mut |node| {
            if let SyntaxNode::Command(command) = node
                && command.runs_something()
            {
                commands.push(command);
            }
        });
        commands
    }

    /// Returns the ranges of the words that belong to no simple command: those of loops and `case`, tests, and
    /// assignments.
    #[must_use]
    pub fn words_outside_commands(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        self.visit(&mut |node| {
            if let SyntaxNode::Assignment(assignment) = node {
                spans.push(assignment.span);
            }
            let SyntaxNode::Command(command) = node else { return };
            if let CommandKind::For(names) | CommandKind::Select(names) = &command.kind {
                spans.extend(names.words.iter().flatten().map(|word| word.span));
            } else if let CommandKind::Case { subject, .. } = &command.kind {
                spans.push(subject.span);
            } else if let CommandKind::Test(_) = &command.kind {
                spans.push(command.span);
            }
        });
        spans
    }
}

impl Command {
    fn runs_something(&self) -> bool {
        match &self.kind {
            CommandKind::Simple(simple) => !simple.words.is_empty(),
            CommandKind::Arithmetic(_) | CommandKind::Test(_) => true,
            CommandKind::Group(_)
            | CommandKind::Subshell(_)
            | CommandKind::If { .. }
            | CommandKind::While { .. }
            | CommandKind::For(_)
            | CommandKind::Select(_)
            | CommandKind::ArithmeticFor { .. }
            | CommandKind::Case { .. }
            | CommandKind::Function { .. }
            | CommandKind::Coprocess { .. } => false,
        }
    }
}

impl<'a> SyntaxNode<'a> {
    /// Returns the range of the node.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Self::Script(script) => script.span,
            Self::Statement(statement) => statement.span,
            Self::Pipeline(pipeline) => pipeline.span,
            Self::Command(command) => command.span,
            Self::CaseArm(arm) => arm.span,
            Self::Assignment(assignment) => assignment.span,
            Self::Redirection(redirection) => redirection.span,
            Self::HereBody(word) | Self::Word(word) => word.span,
            Self::Element(element) => element.span,
            Self::Part(part) => part.span,
            Self::Arithmetic(arithmetic) => arithmetic.span,
        }
    }

    /// Shows this and everything in it.
    pub fn visit(self, see: NodeVisitor<'a, '_>) {
        see(self);
        self.visit_children(&mut |child| child.visit(see));
    }

    /// Shows what is directly in it.
    pub fn visit_children(self, see: NodeVisitor<'a, '_>) {
        match self {
            Self::Script(script) => visit_each(&script.statements, Self::Statement, see),
            Self::Statement(statement) => {
                statement.pipelines().for_each(|pipeline| see(Self::Pipeline(pipeline)));
            }
            Self::Pipeline(pipeline) => {
                pipeline.stages.iter().for_each(|stage| see(Self::Command(&stage.command)));
            }
            Self::Command(command) => command_children(command, see),
            Self::CaseArm(arm) => {
                visit_each(&arm.patterns, Self::Word, see);
                see(Self::Script(&arm.body));
            }
            Self::Assignment(assignment) => assignment_children(assignment, see),
            Self::Redirection(redirection) => match &redirection.target {
                Target::HereDocument(document) => {
                    document.body().into_iter().for_each(|body| see(Self::HereBody(body)));
                }
                target => target.word().into_iter().for_each(|word| see(Self::Word(word))),
            },
            Self::HereBody(word) | Self::Word(word) => visit_each(&word.parts, Self::Part, see),
            Self::Element(element) => {
                element.subscript.iter().for_each(|word| see(Self::Word(word)));
                see(Self::Word(&element.value));
            }
            Self::Part(part) => part_children(part, see),
            Self::Arithmetic(arithmetic) => visit_each(&arithmetic.parts, Self::Part, see),
        }
    }
}

fn visit_each<'a, T>(items: &'a [T], node: fn(&'a T) -> SyntaxNode<'a>, see: NodeVisitor<'a, '_>) {
    items.iter().for_each(|item| see(node(item)));
}

fn command_children<'a>(command: &'a Command, see: NodeVisitor<'a, '_>) {
    match &command.kind {
        CommandKind::Simple(simple) => return simple_children(simple, &command.redirections, see),
        CommandKind::Group(body) | CommandKind::Subshell(body) => see(SyntaxNode::Script(body)),
        CommandKind::If { branches, otherwise } => {
            for (condition, body) in branches {
                see(SyntaxNode::Script(condition));
                see(SyntaxNode::Script(body));
            }
            otherwise.iter().for_each(|body| see(SyntaxNode::Script(body)));
        }
        CommandKind::While { condition, body, .. } => {
            see(SyntaxNode::Script(condition));
            see(SyntaxNode::Script(body));
        }
        CommandKind::For(Loop { words, body, .. })
        | CommandKind::Select(Loop { words, body, .. }) => {
            words.iter().for_each(|words| visit_each(words, SyntaxNode::Word, see));
            see(SyntaxNode::Script(body));
        }
        CommandKind::ArithmeticFor { header, body } => {
            visit_each(header, SyntaxNode::Arithmetic, see);
            see(SyntaxNode::Script(body));
        }
        CommandKind::Case { subject, arms } => {
            see(SyntaxNode::Word(subject));
            visit_each(arms, SyntaxNode::CaseArm, see);
        }
        CommandKind::Function { body, .. } | CommandKind::Coprocess { body, .. } => {
            see(SyntaxNode::Command(body));
        }
        CommandKind::Arithmetic(arithmetic) => see(SyntaxNode::Arithmetic(arithmetic)),
        CommandKind::Test(test) => test_children(test, see),
    }
    visit_each(&command.redirections, SyntaxNode::Redirection, see);
}

fn simple_children<'a>(
    simple: &'a SimpleCommand,
    redirections: &'a [Redirection],
    see: NodeVisitor<'a, '_>,
) {
    let mut nodes: Vec<SyntaxNode<'a>> =
        simple.assignments.iter().map(SyntaxNode::Assignment).collect();
    nodes.extend(simple.words.iter().map(SyntaxNode::Word));
    nodes.extend(redirections.iter().map(SyntaxNode::Redirection));
    nodes.sort_by_key(|node| node.span().start);
    nodes.into_iter().for_each(see);
}

fn assignment_children<'a>(assignment: &'a Assignment, see: NodeVisitor<'a, '_>) {
    assignment.subscript.iter().for_each(|word| see(SyntaxNode::Word(word)));
    match &assignment.value {
        AssignedValue::Word(word) => see(SyntaxNode::Word(word)),
        AssignedValue::Array(elements) => visit_each(elements, SyntaxNode::Element, see),
    }
}

fn test_children<'a>(test: &'a Test, see: NodeVisitor<'a, '_>) {
    match test {
        Test::Word(word) | Test::Unary(_, word) => see(SyntaxNode::Word(word)),
        Test::Binary(binary) => {
            see(SyntaxNode::Word(&binary.left));
            see(SyntaxNode::Word(&binary.right));
        }
        Test::Not(inner) | Test::Group(inner) => test_children(inner, see),
        Test::And(tests) | Test::Or(tests) => {
            tests.iter().for_each(|test| test_children(test, see));
        }
    }
}

fn part_children<'a>(part: &'a WordPart, see: NodeVisitor<'a, '_>) {
    match &part.kind {
        WordPartKind::Literal(_)
        | WordPartKind::SingleQuoted(_)
        | WordPartKind::AnsiQuoted(_)
        | WordPartKind::Glob(_)
        | WordPartKind::BraceRange(_)
        | WordPartKind::Tilde(_) => {}
        WordPartKind::DoubleQuoted(parts) | WordPartKind::LocaleQuoted(parts) => {
            visit_each(parts, SyntaxNode::Part, see);
        }
        WordPartKind::Parameter(parameter) => parameter_children(parameter, see),
        WordPartKind::CommandSubstitution(script)
        | WordPartKind::ProcessSubstitution { script, .. } => {
            see(SyntaxNode::Script(script));
        }
        WordPartKind::Arithmetic(arithmetic) => see(SyntaxNode::Arithmetic(arithmetic)),
        WordPartKind::ExtendedGlob { alternatives: words, .. } | WordPartKind::BraceList(words) => {
            visit_each(words, SyntaxNode::Word, see);
        }
        WordPartKind::Array(elements) => visit_each(elements, SyntaxNode::Element, see),
    }
}

fn parameter_children<'a>(parameter: &'a Parameter, see: NodeVisitor<'a, '_>) {
    parameter.subscript.iter().for_each(|word| see(SyntaxNode::Word(word)));
    match &parameter.operation {
        Operation::Value
        | Operation::Length
        | Operation::Names
        | Operation::Keys
        | Operation::Transform(_) => {}
        Operation::Default(word)
        | Operation::AssignDefault(word)
        | Operation::Require(word)
        | Operation::Alternative(word)
        | Operation::RemovePrefix(word)
        | Operation::RemoveSuffix(word)
        | Operation::ChangeCase(word) => see(SyntaxNode::Word(word)),
        Operation::Replace { pattern, replacement } => {
            see(SyntaxNode::Word(pattern));
            replacement.iter().for_each(|word| see(SyntaxNode::Word(word)));
        }
        Operation::Substring { offset, length } => {
            see(SyntaxNode::Arithmetic(offset));
            length.iter().for_each(|length| see(SyntaxNode::Arithmetic(length)));
        }
    }
}
