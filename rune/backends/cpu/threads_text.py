"""The worker pool in LLVM IR: claiming pieces, sleeping and waking, placing threads.

Words in capitals are filled in by threads.py. PLACEMENT is one of the two texts at the end: Linux
wakes a thread on the processor it last ran on when no other is idle, and a worker that once slept
on the caller's processor would wait there until the caller is done. So the caller sends such
workers elsewhere: @places says where each last ran, @ids has their thread ids.
"""

TEXT = """
@ticket = internal global i64 0, align 128
@done = internal global i64 0, align 128
@busy = internal global i32 0, align 128
@sleepers = internal global i64 0, align 128
@waiting = internal global i32 0
@workers = global i64 0
@task = internal global ptr null
@words = internal global ptr null
@total = internal global i64 0
@chunk = internal global i64 0
@mutex = internal global [128 x i8] zeroinitializer, align 64
@wake = internal global [128 x i8] zeroinitializer, align 64
@ready = internal global [128 x i8] zeroinitializer, align 64

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i64 @llvm.umin.i64(i64, i64)
declare HINT

; Claim pieces and run them until none is left.
define internal void @help() #0 {
entry:
  br label %look
look:
  %seen = load atomic i64, ptr @ticket seq_cst, align 8
  %next = and i64 %seen, 1048575
  %shifted = lshr i64 %seen, 20
  %pieces = and i64 %shifted, 1048575
  %left = icmp ult i64 %next, %pieces
  br i1 %left, label %claim, label %leave
claim:
  %following = add i64 %seen, 1
  %pair = cmpxchg ptr @ticket, i64 %seen, i64 %following seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %work, label %look
work:
  %task = load ptr, ptr @task
  %words = load ptr, ptr @words
  %total = load i64, ptr @total
  %chunk = load i64, ptr @chunk
  %begin = mul i64 %next, %chunk
  %rest = sub i64 %total, %begin
  %length = call i64 @llvm.umin.i64(i64 %chunk, i64 %rest)
  %end = add i64 %begin, %length
  call void %task(ptr %words, i64 %begin, i64 %end)
  %before = atomicrmw add ptr @done, i64 1 seq_cst
  %asleep = load atomic i32, ptr @waiting seq_cst, align 4
  %someone = icmp ne i32 %asleep, 0
  br i1 %someone, label %tell, label %look
tell:
  call i32 @pthread_mutex_lock(ptr @mutex)
  call i32 @pthread_cond_broadcast(ptr @ready)
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %look
leave:
  ret void
}

; Whether a piece waits to be claimed.
define internal i1 @pending() #0 {
  %seen = load atomic i64, ptr @ticket seq_cst, align 8
  %next = and i64 %seen, 1048575
  %shifted = lshr i64 %seen, 20
  %pieces = and i64 %shifted, 1048575
  %left = icmp ult i64 %next, %pieces
  ret i1 %left
}

define internal ptr @worker(ptr %number) #0 {
entry:
  %k = ptrtoint ptr %number to i64
  %place = getelementptr i32, ptr @places, i64 %k
  call void @introduce(i64 %k)
  br label %spin
spin:
  %count = phi i64 [ 0, %entry ], [ 0, %work ], [ %more, %pause ]
  %found = call i1 @pending()
  br i1 %found, label %work, label %tired
work:
  call void @help()
  %here = call i32 @processor()
  store atomic i32 %here, ptr %place seq_cst, align 4
  br label %spin
tired:
  %more = add i64 %count, 1
  %enough = icmp ugt i64 %more, SPINS
  br i1 %enough, label %sleep, label %pause
pause:
  call void PAUSE
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr @mutex)
  %s = atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %check
check:
  %woken = call i1 @pending()
  br i1 %woken, label %up, label %wait
wait:
  call i32 @pthread_cond_wait(ptr @wake, ptr @mutex)
  br label %check
up:
  %t = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
}

define void @parallel(ptr %task, ptr %words, i64 %total, i64 %chunk) #0 {
entry:
  %rounded = add i64 %total, %chunk
  %ceiling = sub i64 %rounded, 1
  %pieces = udiv i64 %ceiling, %chunk
  %workers = load atomic i64, ptr @workers seq_cst, align 8
  %several = icmp ugt i64 %pieces, 1
  %many = icmp ult i64 %pieces, 1048575
  %helped = icmp ne i64 %workers, 0
  %sensible = and i1 %several, %many
  %worthwhile = and i1 %sensible, %helped
  br i1 %worthwhile, label %try, label %alone
try:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %free = extractvalue { i32, i1 } %pair, 1
  br i1 %free, label %start, label %alone
alone:
  call void %task(ptr %words, i64 0, i64 %total)
  ret void
start:
  store ptr %task, ptr @task
  store ptr %words, ptr @words
  store i64 %total, ptr @total
  store i64 %chunk, ptr @chunk
  store atomic i64 0, ptr @done seq_cst, align 8
  %old = load atomic i64, ptr @ticket seq_cst, align 8
  %epoch = lshr i64 %old, 40
  %later = add i64 %epoch, 1
  %high = shl i64 %later, 40
  %middle = shl i64 %pieces, 20
  %new = or i64 %high, %middle
  store atomic i64 %new, ptr @ticket seq_cst, align 8
  call void @spread()
  %sleeping = load atomic i64, ptr @sleepers seq_cst, align 8
  %any = icmp ne i64 %sleeping, 0
  br i1 %any, label %call, label %work
call:
  call i32 @pthread_mutex_lock(ptr @mutex)
  call i32 @pthread_cond_broadcast(ptr @wake)
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
work:
  call void @help()
  br label %spin
spin:
  %count = phi i64 [ 0, %work ], [ %more, %pause ]
  %now = load atomic i64, ptr @done seq_cst, align 8
  %complete = icmp eq i64 %now, %pieces
  br i1 %complete, label %finish, label %tired
tired:
  %more = add i64 %count, 1
  %enough = icmp ugt i64 %more, SPINS
  br i1 %enough, label %sleep, label %pause
pause:
  call void PAUSE
  br label %spin
sleep:
  store atomic i32 1, ptr @waiting seq_cst, align 4
  call i32 @pthread_mutex_lock(ptr @mutex)
  br label %check
check:
  %then = load atomic i64, ptr @done seq_cst, align 8
  %over = icmp eq i64 %then, %pieces
  br i1 %over, label %up, label %wait
wait:
  call i32 @pthread_cond_wait(ptr @ready, ptr @mutex)
  br label %check
up:
  call i32 @pthread_mutex_unlock(ptr @mutex)
  store atomic i32 0, ptr @waiting seq_cst, align 4
  br label %finish
finish:
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}

; Start workers; the result is how many there are.
define i64 @start(i64 %wanted) #0 {
entry:
  %id = alloca i64
  %attributes = alloca [128 x i8], align 16
  call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  call i32 @pthread_cond_init(ptr @wake, ptr null)
  call i32 @pthread_cond_init(ptr @ready, ptr null)
  call i32 @pthread_attr_init(ptr %attributes)
  call i32 @pthread_attr_setstacksize(ptr %attributes, i64 STACK)
  call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 DETACHED)
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k1, %made ]
  %more = icmp ult i64 %k, %wanted
  br i1 %more, label %make, label %leave
make:
  %number = inttoptr i64 %k to ptr
  %failed = call i32 @pthread_create(ptr %id, ptr %attributes, ptr @worker, ptr %number)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %made, label %leave
made:
  %k1 = add i64 %k, 1
  br label %loop
leave:
  store atomic i64 %k, ptr @workers seq_cst, align 8
  ret i64 %k
}

PLACEMENT
; In a forked child: there are no workers, and no job.
define void @forget() #0 {
  store atomic i64 0, ptr @workers seq_cst, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}
"""

PLACEMENT = """
@places = internal global [1024 x i32] zeroinitializer
@ids = internal global [1024 x i32] zeroinitializer
@allowed = global [16 x i64] zeroinitializer

declare i32 @sched_getcpu()
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @gettid()

define internal i32 @processor() #0 {
  %here = call i32 @sched_getcpu()
  ret i32 %here
}

define internal void @introduce(i64 %k) #0 {
  %id = call i32 @gettid()
  %at = getelementptr i32, ptr @ids, i64 %k
  store atomic i32 %id, ptr %at seq_cst, align 4
  %place = getelementptr i32, ptr @places, i64 %k
  %here = call i32 @sched_getcpu()
  store atomic i32 %here, ptr %place seq_cst, align 4
  ret void
}

; Move workers off the caller's processor.
define internal void @spread() #0 {
entry:
  %here = call i32 @sched_getcpu()
  %workers = load atomic i64, ptr @workers seq_cst, align 8
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %next, %on ]
  %more = icmp ult i64 %k, %workers
  br i1 %more, label %look, label %leave
look:
  %at = getelementptr i32, ptr @places, i64 %k
  %place = load atomic i32, ptr %at seq_cst, align 4
  %same = icmp eq i32 %place, %here
  br i1 %same, label %move, label %on
move:
  call void @send_away(i64 %k, i32 %here)
  store atomic i32 -1, ptr %at seq_cst, align 4
  br label %on
on:
  %next = add i64 %k, 1
  br label %test
leave:
  ret void
}

define internal void @send_away(i64 %k, i32 %here) #0 {
  %mask = alloca [16 x i64], align 16
  call void @llvm.memcpy.p0.p0.i64(ptr %mask, ptr @allowed, i64 128, i1 false)
  %bit = zext i32 %here to i64
  %number = lshr i64 %bit, 6
  %offset = and i64 %bit, 63
  %word = getelementptr i64, ptr %mask, i64 %number
  %old = load i64, ptr %word
  %one = shl i64 1, %offset
  %others = xor i64 %one, -1
  %new = and i64 %old, %others
  store i64 %new, ptr %word
  %at = getelementptr i32, ptr @ids, i64 %k
  %id = load atomic i32, ptr %at seq_cst, align 4
  %ignored = call i32 @sched_setaffinity(i32 %id, i64 128, ptr %mask)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
NO_PLACEMENT = """
@places = internal global [1024 x i32] zeroinitializer
define internal i32 @processor() #0 {
  ret i32 -1
}
define internal void @introduce(i64 %k) #0 {
  ret void
}
define internal void @spread() #0 {
  ret void
}
"""
