# Tries everything that must not be possible, and some of what must. Prints a JSON object: what was tried, and "done" or
# how it was refused.
import ctypes, errno, fcntl, json, mmap, os, resource, signal, socket, struct, subprocess

OUT, TASK, PLACE, DAEMON = os.environ['OUTSIDE'], os.environ['TASK'], os.environ['PLACE'], int(os.environ['DAEMON'])
libc = ctypes.CDLL(None, use_errno=True)
tried = {}


def act(f):
    try:
        f()
        tried[f.__name__] = 'done'
    except OSError as e:
        tried[f.__name__] = errno.errorcode.get(e.errno, str(e))
    except Exception as e:
        tried[f.__name__] = 'error: ' + repr(e)


def out(name): return OUT + '/' + name


def write(path):
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, b'x')
    os.close(fd)


def write_new(path): os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def call(*args):
    if libc.syscall(*args) < 0:
        raise OSError(ctypes.get_errno(), 'syscall')


# First, before this script opens any itself.
@act
def inherited_descriptors():
    fds = [fd for fd in map(int, os.listdir('/proc/self/fd')) if fd > 2 and os.path.exists('/proc/self/fd/%d' % fd)]
    if not fds: raise OSError(errno.EBADF, 'none')


# Files outside, by every way to them.
@act
def write_absolute(): write(out('write'))
@act
def write_dotdot(): write(TASK + '/../../outside/write')
@act
def write_symlink():
    os.symlink(out('write'), TASK + '/way')
    write(TASK + '/way')
@act
def write_proc_root(): write('/proc/self/root' + out('write'))
@act
def write_parent_root(): write('/proc/%d/root' % os.getppid() + out('write'))
@act
def write_parent_cwd(): write('/proc/%d/cwd' % os.getppid() + out('write'))
@act
def hard_link_in():
    os.link(out('link'), TASK + '/hard')
    write(TASK + '/hard')
@act
def hard_link_out():
    write_new(TASK + '/own')
    os.link(TASK + '/own', out('own'))
@act
def create(): write_new(out('created'))
@act
def truncate(): os.truncate(out('truncate'), 0)
@act
def open_truncate(): os.close(os.open(out('truncate'), os.O_RDONLY | os.O_TRUNC))
@act
def unlink(): os.unlink(out('unlink'))
@act
def rename_outside(): os.rename(out('rename'), out('renamed'))
@act
def rename_in(): os.rename(out('rename'), TASK + '/renamed')
@act
def rename_out():
    write_new(TASK + '/mine')
    os.rename(TASK + '/mine', out('mine'))
@act
def mkdir(): os.mkdir(out('dir'))
@act
def symlink_outside(): os.symlink('x', out('symlink'))
@act
def fifo_outside(): os.mkfifo(out('fifo'))
@act
def create_dotdot(): write_new(TASK + '/../../outside/created')
@act
def create_by_link_to_directory():
    os.symlink(OUT, TASK + '/dirway')
    write_new(TASK + '/dirway/created')
@act
def create_proc_root(): write_new('/proc/self/root' + out('created'))
@act
def write_by_held_directory():
    fd = os.open(OUT, os.O_PATH)
    os.close(os.open('created', os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
@act
def write_by_reopened(): write('/proc/self/fd/%d' % os.open(out('write'), os.O_RDONLY))
@act
def write_fifo(): os.close(os.open(out('pipe'), os.O_WRONLY | os.O_NONBLOCK))
@act
def device(): os.mknod(TASK + '/device', 0o600 | 0o060000, os.makedev(7, 0))
@act
def read_device(): os.close(os.open(os.environ['DEVICE'], os.O_RDONLY | os.O_NONBLOCK))
@act
def open_terminal(): os.close(os.open(os.environ['TERMINAL'], os.O_RDWR | os.O_NOCTTY))
# Two names of one file, the other one outside: not this script's doing.
@act
def write_linked(): write(TASK + '/linked')
@act
def write_other_task(): write(PLACE + '/root/other/secret')
@act
def write_state(): write(PLACE + '/state/secret')
@act
def write_home(): write(PLACE + '/home/secret')
# What Landlock does not see.
@act
def chmod(): os.chmod(out('chmod'), 0o600)
@act
def chown(): os.chown(out('chown'), os.getuid(), os.getgid())
@act
def utime(): os.utime(out('utime'), (1, 1))
@act
def setxattr(): os.setxattr(out('xattr'), 'user.x', b'1')
@act
def flock():
    fd = os.open(out('flock'), os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
@act
def flock_state():
    fd = os.open(PLACE + '/state', os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
@act
def chmod_task_of_other(): os.chmod(PLACE + '/root/other/secret', 0o644)
# Reading what is hidden.
@act
def read_state(): open(PLACE + '/state/secret').read()
@act
def read_other_task(): open(PLACE + '/root/other/secret').read()
@act
def read_home(): open(PLACE + '/home/secret').read()
@act
def list_root(): assert os.listdir(PLACE + '/root') == ['task']
@act
def read_outside(): open(out('write')).read()
# Mounts and namespaces.
@act
def mount(): call(165, b'none', TASK.encode(), b'tmpfs', 0, 0)
@act
def umount(): call(166, TASK.encode(), 2)
@act
def remount(): call(165, b'none', b'/', 0, 32 | 0x1000, 0)
@act
def bind(): call(165, OUT.encode(), TASK.encode(), 0, 0x1000, 0)
@act
def open_tree(): call(428, -100, OUT.encode(), 1)
@act
def fsopen(): call(430, b'tmpfs', 0)
@act
def mount_setattr(): call(442, -100, b'/', 0x8000, struct.pack('QQQQ', 0, 1, 0, 0), 32)
@act
def pivot_root(): call(155, TASK.encode(), TASK.encode())
@act
def setns(): call(308, os.open('/proc/%d/ns/mnt' % DAEMON, os.O_RDONLY), 0)
@act
def user_namespace(): call(272, 0x10000000)
@act
def user_namespace_by_clone():
    pid = libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    if pid < 0: raise OSError(ctypes.get_errno(), 'clone')
@act
def clone3(): call(435, 0, 0)
@act
def chroot(): os.chroot(TASK)
# Other processes.
@act
def ptrace(): call(101, 16, DAEMON, 0, 0)
@act
def read_memory(): call(310, DAEMON, 0, 0, 0, 0, 0)
@act
def open_memory(): open('/proc/%d/mem' % DAEMON, 'rb')
@act
def write_memory(): write('/proc/%d/mem' % DAEMON)
@act
def write_parent_memory(): write('/proc/%d/mem' % os.getppid())
@act
def read_environment(): open('/proc/%d/environ' % DAEMON, 'rb').read()
@act
def write_vm(): call(311, DAEMON, 0, 0, 0, 0, 0)
@act
def memory_map(): open('/proc/%d/maps' % DAEMON).read(1)
@act
def read_command_line(): assert open('/proc/%d/cmdline' % DAEMON).read()
@act
def list_descriptors(): os.listdir('/proc/%d/fd' % DAEMON)
@act
def open_descriptor(): os.open('/proc/%d/fd/0' % DAEMON, os.O_RDONLY)
@act
def take_descriptor(): call(438, os.pidfd_open(DAEMON), 1, 0)
@act
def compare_processes(): call(312, DAEMON, DAEMON, 0, 0, 0)
@act
def seize(): call(101, 0x4206, DAEMON, 0, 0)
@act
def seize_parent(): call(101, 0x4206, os.getppid(), 0, 0)
@act
def oom_score(): write('/proc/%d/oom_score_adj' % DAEMON)
@act
def signal_daemon(): os.kill(DAEMON, 0)
@act
def signal_by_descriptor(): call(424, os.pidfd_open(DAEMON), 0, 0, 0)
@act
def signal_thread(): call(234, DAEMON, DAEMON, 0)
@act
def signal_by_event():
    # Whether it comes only the one it is for can tell; it would end.
    a, b = socket.socketpair()
    fcntl.fcntl(a, fcntl.F_SETOWN, DAEMON)
    fcntl.fcntl(a, fcntl.F_SETFL, fcntl.fcntl(a, fcntl.F_GETFL) | os.O_ASYNC)
    b.send(b'x')
@act
def signal_keeper(): os.kill(os.getppid(), signal.SIGKILL)
@act
def prlimit():
    resource.prlimit(DAEMON, resource.RLIMIT_NOFILE, (64, 64))
@act
def affinity(): os.sched_setaffinity(DAEMON, {0})
@act
def scheduler(): os.sched_setscheduler(DAEMON, os.SCHED_BATCH, os.sched_param(0))
@act
def priority(): os.setpriority(os.PRIO_PROCESS, DAEMON, 19)
@act
def own_limit(): resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 64))
@act
def own_affinity(): os.sched_setaffinity(0, os.sched_getaffinity(0))
# Sockets.
def reach(kind, address):
    with socket.socket(socket.AF_UNIX, kind) as s: s.connect(address)
@act
def unix_stream(): reach(socket.SOCK_STREAM, PLACE + '/stream.sock')
@act
def unix_datagram(): reach(socket.SOCK_DGRAM, PLACE + '/dgram.sock')
@act
def unix_abstract(): reach(socket.SOCK_STREAM, '\0cofferdam-test-%d' % DAEMON)
@act
def tcp():
    with socket.create_connection(('127.0.0.1', int(open(TASK + '/port').read())), 5): pass
@act
def datagram_pair():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.sendto(b'x', PLACE + '/dgram.sock')
@act
def stream_pair():
    a, b = socket.socketpair()
    a.send(b'x'), b.recv(1)
@act
def vsock(): socket.socket(40, socket.SOCK_STREAM)
@act
def inet(): socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
# What belongs to the user or the kernel.
@act
def shared_memory(): call(29, 0x1234, 4096, 0o1600)
@act
def semaphores(): call(64, 0x1234, 1, 0o1600)
@act
def messages(): call(68, 0x1234, 0o1600)
@act
def message_queue(): call(240, b'cofferdam', os.O_CREAT | os.O_RDWR, 0o600, 0)
@act
def io_uring(): call(425, 1, ctypes.create_string_buffer(256))
@act
def keyring(): call(250, 0, -3, 0)
@act
def add_key(): call(248, b'user', b'cofferdam', b'x', 1, -3)
@act
def bpf(): call(321, 0, 0, 0)
@act
def perf(): call(298, 0, 0, -1, -1, 0)
@act
def userfaultfd(): call(323, 1)
@act
def handle(): call(303, -100, b'/', 0, 0, 0)
@act
def x32():
    if os.uname().machine == 'x86_64': call(0x40000000 | 39)
    else: raise OSError(errno.ENOSYS, 'no such thing')
@act
def i386():
    if os.uname().machine != 'x86_64': raise OSError(errno.ENOSYS, 'no such thing')
    pid = os.fork()
    if pid == 0:
        # mov eax, 20 (getpid); int 0x80; ret
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b'\xb8\x14\0\0\0\xcd\x80\xc3')
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
        os._exit(0)
    if os.WIFSIGNALED(os.waitpid(pid, 0)[1]): raise OSError(errno.EPERM, 'killed')
@act
def setuid_helper():
    if not os.path.exists(out('id')): raise OSError(errno.EPERM, 'there is none')
    if int(subprocess.check_output([out('id'), '-u'])) == os.getuid(): raise OSError(errno.EPERM, 'as before')
@act
def capabilities():
    text = open('/proc/self/status').read()
    if 'CapEff:\t0000000000000000' in text and 'CapPrm:\t0000000000000000' in text and 'NoNewPrivs:\t1' in text:
        raise OSError(errno.EPERM, 'none')
# What a task needs.
@act
def write_task(): write_new(TASK + '/result')
@act
def write_given(): write(TASK + '/given')
@act
def write_temporary(): write_new(os.environ['TMPDIR'] + '/x')
@act
def write_private_home(): write_new(os.environ['HOME'] + '/x')
@act
def rename_inside():
    os.mkdir(TASK + '/dir')
    write_new(TASK + '/moved')
    os.rename(TASK + '/moved', TASK + '/dir/moved')
@act
def dev_null():
    with open('/dev/null', 'w') as f: f.write('x')
@act
def start_programs(): assert subprocess.check_output('echo x | cat', shell=True) == b'x\n'
@act
def shm():
    write_new('/dev/shm/cofferdam-test-%d' % os.getpid())
    os.unlink('/dev/shm/cofferdam-test-%d' % os.getpid())
@act
def terminal(): os.openpty()
@act
def chmod_inside(): os.chmod(TASK + '/result', 0o755)

print(json.dumps(tried))
