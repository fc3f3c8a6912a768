//! Ordinary work goes on inside the walls.

use crate::cell::{Cell, has, is_walled};

macro_rules! works {
    ($($name:ident $(needs $program:literal)?: $script:expr;)*) => {$(
        #[test]
        fn $name() {
            if is_walled() $(&& has($program))? {
                Cell::new().with(&["write=/tmp"]).permits($script);
            }
        }
    )*};
}

works! {
    pipes_and_substitutions: "test \"$(printf 'b\\na\\n' | sort | head -1)\" = a";
    files_of_the_workspace: "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && ln a/d a/e && ln -s d a/f && cat a/f && rm -r a";
    temporary_files: "f=$(mktemp) && echo x > $f && cat $f && rm $f";
    standard_devices: "echo x > /dev/null && head -c 4 /dev/urandom | wc -c && echo y > /dev/stdout && cat < /dev/zero | head -c 1 > /dev/full; test -e /dev/tty";
    shared_memory: "echo x > /dev/shm/x && cat /dev/shm/x";
    job_control: "set -m; sleep 0.1 & wait $!; (exit 3) & wait $! ; test $? = 3";
    signals_among_ones_own: "sleep 100 & kill $! && ! wait $!";
    facts_about_the_machine: "cat /proc/cpuinfo /proc/meminfo /proc/self/maps > /dev/null && ls /sys/class > /dev/null && nproc && id -un";
    times_and_modes: "touch -d 2001-01-01 f && chmod 755 f && test -x f && chmod 1777 .";
    named_pipes: "mkfifo p && (echo x > p &) && cat p";
    locks needs "flock": "flock lock true && flock -n lock true";
    c_programs needs "gcc": "printf 'int main(){return 0;}' > a.c && gcc a.c -o a && ./a";
    python needs "python3": "python3 -c 'import os,socket,subprocess,tempfile,multiprocessing as m\nm.set_start_method(\"fork\")\nq=m.Queue();p=m.Process(target=q.put,args=(1,));p.start();assert q.get()==1;p.join()\na,b=socket.socketpair();a.send(b\"x\");assert b.recv(1)==b\"x\"\ns=socket.socket(socket.AF_UNIX);s.bind(\"s.sock\");s.listen();c=socket.socket(socket.AF_UNIX);c.connect(\"s.sock\")\ntempfile.TemporaryFile();subprocess.run([\"true\"],check=True)'";
    a_terminal_of_ones_own needs "python3": "python3 -c 'import pty,sys; sys.exit(pty.spawn([\"sh\",\"-c\",\"test -t 0 && echo in > /dev/tty\"])!=0)'";
    a_server_and_its_client needs "python3": "python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & n=0; until python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:8123/\")' 2>/dev/null; do n=$((n+1)); test $n -lt 50 || exit 1; sleep 0.1; done";
    node needs "node": "node -e 'const c=require(\"child_process\"),n=require(\"net\"),w=require(\"worker_threads\"),o=require(\"os\");c.execSync(\"true\");o.networkInterfaces();new w.Worker(\"0\",{eval:true});const s=n.createServer(x=>x.end()).listen(0,\"127.0.0.1\",()=>n.connect(s.address().port,\"127.0.0.1\").on(\"close\",()=>s.close()).resume())'";
    a_repository_made_and_used needs "git": "git init -q r && cd r && git config user.email a@b && git config user.name a && echo x > f && git add f && git commit -qm m && git clone -q . ../copy && git -C ../copy log --oneline && git gc -q";
    make needs "make": "printf 'all: a b\\na b:\\n\\ttouch $@\\n' > Makefile && make -j4 && test -e a";
    archives needs "tar": "mkdir d && echo x > d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && cat d/f";
    a_debugger_free_trace_of_time: "sh -c 'times' && date && uname -a";
}

#[test]
fn sandboxed_command_reaches_a_server_started_by_an_earlier_command() {
    if !is_walled() || !has("python3") {
        return;
    }
    // Both belong to one session: the probe program runs them one after the other.
    let cell = Cell::new().with(&["times=2"]);
    let script = "if test -e started; then \
            python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:8124/\")'; \
        else \
            touch started; python3 -m http.server 8124 --bind 127.0.0.1 > log 2>&1 & \
            n=0; until grep -q Serving log || test $n -gt 100; do n=$((n+1)); sleep 0.05; done; \
            python3 -c 'import time; time.sleep(0.3)'; \
        fi";
    cell.permits(script);
}

#[test]
fn working_folder_has_its_path_and_is_writable_in_the_sandbox() {
    if is_walled() {
        let cell = Cell::new();
        let outcome = cell
            .permits("pwd && echo x > relative && cat relative && mkdir sub && cd sub && pwd -P");
        let here = cell.workspace.display();
        assert_eq!(outcome.stdout, format!("{here}\nx\n{here}/sub\n"));
    }
}

#[test]
fn missing_and_nested_writable_roots_are_accepted() {
    if is_walled() {
        let cell = Cell::new();
        let inner = format!("write={}/sub", cell.workspace.display());
        cell.put_folder("sub");
        let cell = cell.with(&["write=/no/such/folder", &inner]);
        cell.permits("echo x > sub/a && mv sub/a b");
    }
}
