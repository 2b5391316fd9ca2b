"""A cached call in LLVM IR: from Python's arguments to Python's results, in native code.

Words in capitals are filled in by describe.py: the interpreter's functions and objects, and byte
offsets. A call is described by words (describe.py has their order). `@attempt` makes it, or gives
UNFIT, having done nothing, where what it finds is not what the words say.

    @call      each kept call of the function, then the general way
    @settings  the settings in force; null where a transformation is being traced, or where a call
             of `configure` has not yet been heard
    @match     walk the arguments: check every node, take the memory of every leaf (match.py)
    @make      one result: an array of Python's over uninitialised memory
    @build     the tree of the results

Where memory is short, the general way says of what. Other errors are raised.

Invariant: whatever is held while other Python code may run is counted, and let go on every path.
"""

TEXT = """
@unfit = internal global i8 0

define ptr @call(ptr %self, ptr %argv, i64 %count, ptr %names) #0 {
entry:
  %at = getelementptr i8, ptr %self, i64 SLOT_CALLS
  %calls = load ptr, ptr %at
  %none = icmp eq ptr %calls, null
  br i1 %none, label %generally, label %look
look:
  %settings = call ptr @settings()
  %tracing = icmp eq ptr %settings, null
  br i1 %tracing, label %generally, label %start
start:
  call void INCREF(ptr %calls)
  %size_at = getelementptr i8, ptr %calls, i64 SIZE
  %size = load i64, ptr %size_at
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %next, %unfit ]
  %more = icmp slt i64 %k, %size
  br i1 %more, label %try, label %give_up
try:
  %items = getelementptr i8, ptr %calls, i64 TUPLE_ITEMS
  %item_at = getelementptr ptr, ptr %items, i64 %k
  %item = load ptr, ptr %item_at
  %record_at = getelementptr i8, ptr %item, i64 TUPLE_ITEMS
  %record = load ptr, ptr %record_at
  %words = getelementptr i8, ptr %record, i64 BYTES_DATA
  %result = call ptr @attempt(ptr %words, ptr %argv, i64 %count, ptr %names, ptr %settings)
  %fits = icmp ne ptr %result, UNFIT
  br i1 %fits, label %done, label %unfit
unfit:
  %next = add i64 %k, 1
  br label %head
done:
  call void DECREF(ptr %calls)
  ret ptr %result
give_up:
  call void DECREF(ptr %calls)
  br label %generally
generally:
  %general = call ptr @general(ptr %self, ptr %argv, i64 %count, ptr %names)
  ret ptr %general
}

; The call by the function that Python would have called.
define internal ptr @general(ptr %self, ptr %argv, i64 %count, ptr %names) #0 {
entry:
  %keywords = call i64 @keywords(ptr %names)
  %all = add i64 %count, %keywords
  %many = icmp sgt i64 %all, MOST_COPIED
  br i1 %many, label %bind, label %copying
bind:
  ; As a method: the interpreter copies the arguments, and not to the stack.
  %bound = call ptr METHOD_NEW(ptr GENERAL, ptr %self)
  %unbound = icmp eq ptr %bound, null
  br i1 %unbound, label %failed, label %bound_call
failed:
  ret ptr null
bound_call:
  %answer = call ptr VECTORCALL(ptr %bound, ptr %argv, i64 %count, ptr %names)
  call void DECREF(ptr %bound)
  ret ptr %answer
copying:
  %room = add i64 %all, 1
  %copy = alloca ptr, i64 %room
  store ptr %self, ptr %copy
  %rest = getelementptr ptr, ptr %copy, i64 1
  br label %head
head:
  %k = phi i64 [ 0, %copying ], [ %next, %body ]
  %more = icmp slt i64 %k, %all
  br i1 %more, label %body, label %done
body:
  %from = getelementptr ptr, ptr %argv, i64 %k
  %to = getelementptr ptr, ptr %rest, i64 %k
  %argument = load ptr, ptr %from
  store ptr %argument, ptr %to
  %next = add i64 %k, 1
  br label %head
done:
  %given = add i64 %count, 1
  %result = call ptr VECTORCALL(ptr GENERAL, ptr %copy, i64 %given, ptr %names)
  ret ptr %result
}

define internal i64 @keywords(ptr %names) #0 {
entry:
  %none = icmp eq ptr %names, null
  br i1 %none, label %zero, label %some
zero:
  ret i64 0
some:
  %at = getelementptr i8, ptr %names, i64 SIZE
  %size = load i64, ptr %at
  ret i64 %size
}

define internal ptr @settings() #0 {
entry:
  %slot = alloca ptr
  store ptr null, ptr %slot
  %code = call i32 GET_VARIABLE(ptr INTERPRETER_VARIABLE, ptr null, ptr %slot)
  %unreadable = icmp ne i32 %code, 0
  br i1 %unreadable, label %forget, label %read
read:
  %interpreter = load ptr, ptr %slot
  %unset = icmp eq ptr %interpreter, null
  br i1 %unset, label %evaluating, label %set
set:
  call void DECREF(ptr %interpreter)
  %outermost = icmp eq ptr %interpreter, OUTERMOST
  br i1 %outermost, label %evaluating, label %tracing
tracing:
  ret ptr null
evaluating:
  store ptr null, ptr %slot
  call i32 GET_VARIABLE(ptr CONFIG_VARIABLE, ptr null, ptr %slot)
  %found = load ptr, ptr %slot
  %failed = icmp eq ptr %found, null
  br i1 %failed, label %forget, label %known
forget:
  call void CLEAR_ERROR()
  ret ptr null
known:
  %settings_at = getelementptr i8, ptr %found, i64 SLOT_SETTINGS
  %settings = load ptr, ptr %settings_at
  call void DECREF(ptr %found)
  ret ptr %settings
}

define internal i64 @word(ptr %words, i64 %number) #0 {
  %at = getelementptr i64, ptr %words, i64 %number
  %word = load i64, ptr %at
  ret i64 %word
}

define internal ptr @pointer(ptr %words, i64 %number) #0 {
  %at = getelementptr i64, ptr %words, i64 %number
  %word = load ptr, ptr %at
  ret ptr %word
}

define internal ptr @field(ptr %object, i64 %offset) #0 {
  %at = getelementptr i8, ptr %object, i64 %offset
  %field = load ptr, ptr %at
  ret ptr %field
}

define internal void @count(ptr %words, i64 %number) #0 {
  %counter = call ptr @pointer(ptr %words, i64 %number)
  %before = load i64, ptr %counter
  %after = add i64 %before, 1
  store i64 %after, ptr %counter
  ret void
}

define internal ptr @attempt(ptr %words, ptr %argv, i64 %count, ptr %names, ptr %settings) #0 {
entry:
  %wanted = call ptr @pointer(ptr %words, i64 W_CONFIG)
  %same_settings = icmp eq ptr %wanted, %settings
  br i1 %same_settings, label %counts, label %unfit
counts:
  %taken = call i64 @word(ptr %words, i64 W_POSITIONAL)
  %same_count = icmp eq i64 %taken, %count
  br i1 %same_count, label %called, label %unfit
called:
  %named = call i1 @names_fit(ptr %words, ptr %names)
  br i1 %named, label %prepare, label %unfit
prepare:
  %inputs = call i64 @word(ptr %words, i64 W_INPUTS)
  %nodes_count = call i64 @word(ptr %words, i64 W_NODES)
  %results = call i64 @word(ptr %words, i64 W_RESULTS)
  %sizes = call i64 @word(ptr %words, i64 W_SIZES)
  %arena_number = add i64 %inputs, %results
  %first_size = add i64 %arena_number, 1
  %data_count = add i64 %first_size, %sizes
  %nodes = alloca ptr, i64 %nodes_count
  %references_count = add i64 %nodes_count, 1
  %references = alloca ptr, i64 %references_count
  %numbers = alloca i64, i64 %inputs
  %data = alloca ptr, i64 %data_count
  %made = alloca ptr, i64 %results
  %place = call ptr @match(ptr %words, ptr %argv, ptr %nodes, ptr %data, ptr %numbers, ptr %references)
  %matches = icmp ne ptr %place, null
  br i1 %matches, label %make, label %unmatched
unmatched:
  %error = call ptr ERROR()
  %is_error = icmp ne ptr %error, null
  br i1 %is_error, label %raise, label %release
make:
  %r = phi i64 [ 0, %prepare ], [ %r_next, %keep ]
  %r_more = icmp slt i64 %r, %results
  br i1 %r_more, label %make_one, label %arena
make_one:
  %r_data = add i64 %inputs, %r
  %r_data_at = getelementptr ptr, ptr %data, i64 %r_data
  %array = call ptr @make(ptr %words, i64 %r, ptr %place, ptr %r_data_at)
  %r_failed = icmp eq ptr %array, null
  br i1 %r_failed, label %unmake, label %keep
keep:
  %made_at = getelementptr ptr, ptr %made, i64 %r
  store ptr %array, ptr %made_at
  %r_next = add i64 %r, 1
  br label %make
arena:
  %arena_at = getelementptr ptr, ptr %data, i64 %arena_number
  %bytes = call i64 @word(ptr %words, i64 W_ARENA_BYTES)
  %no_arena = icmp eq i64 %bytes, 0
  br i1 %no_arena, label %copy_sizes, label %take
take:
  %taken_arena = call ptr @take_arena(ptr %words, i64 %bytes)
  %a_failed = icmp eq ptr %taken_arena, null
  br i1 %a_failed, label %unmake, label %have
have:
  %arena_data = call ptr @field(ptr %taken_arena, i64 DATA)
  store ptr %arena_data, ptr %arena_at
  br label %copy_sizes
copy_sizes:
  %held_arena = phi ptr [ null, %arena ], [ %taken_arena, %have ]
  %size_words = call i64 @word(ptr %words, i64 W_SIZES_AT)
  br label %size_head
size_head:
  %s = phi i64 [ 0, %copy_sizes ], [ %s_next, %size_body ]
  %s_more = icmp slt i64 %s, %sizes
  br i1 %s_more, label %size_body, label %run
size_body:
  %s_number = add i64 %size_words, %s
  %s_value = call ptr @pointer(ptr %words, i64 %s_number)
  %s_data = add i64 %first_size, %s
  %s_at = getelementptr ptr, ptr %data, i64 %s_data
  store ptr %s_value, ptr %s_at
  %s_next = add i64 %s, 1
  br label %size_head
run:
  call void @count(ptr %words, i64 W_SUBMITTED)
  %function = call ptr @pointer(ptr %words, i64 W_FUNCTION)
  %brief = call i64 @word(ptr %words, i64 W_IS_BRIEF)
  %is_brief = icmp ne i64 %brief, 0
  br i1 %is_brief, label %run_brief, label %run_long
run_brief:
  call void %function(ptr %data)
  br label %ran
run_long:
  %state = call ptr SAVE_THREAD()
  call void %function(ptr %data)
  call void RESTORE_THREAD(ptr %state)
  br label %ran
ran:
  call void @count(ptr %words, i64 W_FINISHED)
  call void @count(ptr %words, i64 W_RUNS)
  br i1 %is_brief, label %whole, label %look
look:
  %raised = call ptr ERROR()
  %is_whole = icmp eq ptr %raised, null
  br i1 %is_whole, label %whole, label %interrupted
interrupted:
  call void @drop(ptr %made, i64 0, i64 %results)
  %unused = icmp eq ptr %held_arena, null
  br i1 %unused, label %raise, label %drop_unused
drop_unused:
  call void DECREF(ptr %held_arena)
  br label %raise
whole:
  %had_arena = icmp ne ptr %held_arena, null
  br i1 %had_arena, label %give_arena, label %finish
give_arena:
  %arenas = call ptr @pointer(ptr %words, i64 W_ARENAS)
  %appended = call i32 LIST_APPEND(ptr %arenas, ptr %held_arena)
  %not_appended = icmp ne i32 %appended, 0
  br i1 %not_appended, label %forget_error, label %drop_arena
forget_error:
  call void CLEAR_ERROR()
  br label %drop_arena
drop_arena:
  call void DECREF(ptr %held_arena)
  br label %finish
finish:
  call void @release(ptr %references)
  %tree = call ptr @build(ptr %words, ptr %made)
  ret ptr %tree
unmake:
  %finished = phi i64 [ %r, %make_one ], [ %results, %take ]
  call void @drop(ptr %made, i64 0, i64 %finished)
  %short = call i32 ERROR_MATCHES(ptr MEMORY_ERROR)
  %is_short = icmp ne i32 %short, 0
  br i1 %is_short, label %tell_generally, label %raise
tell_generally:
  call void CLEAR_ERROR()
  br label %release
raise:
  call void @release(ptr %references)
  ret ptr null
release:
  call void @release(ptr %references)
  br label %unfit
unfit:
  ret ptr UNFIT
}

define internal i1 @names_fit(ptr %words, ptr %names) #0 {
entry:
  %wanted = call i64 @word(ptr %words, i64 W_NAMES)
  %given = call i64 @keywords(ptr %names)
  %as_many = icmp eq i64 %wanted, %given
  br i1 %as_many, label %start, label %no
start:
  %first = call i64 @word(ptr %words, i64 W_NAMES_AT)
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %next, %same ]
  %more = icmp slt i64 %k, %given
  br i1 %more, label %body, label %yes
body:
  %number = add i64 %first, %k
  %name = call ptr @pointer(ptr %words, i64 %number)
  %offset = mul i64 %k, 8
  %item_offset = add i64 %offset, TUPLE_ITEMS
  %item = call ptr @field(ptr %names, i64 %item_offset)
  %is_same = icmp eq ptr %name, %item
  br i1 %is_same, label %same, label %no
same:
  %next = add i64 %k, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}
"""
