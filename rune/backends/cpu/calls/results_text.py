"""Results, arenas and trees of a cached call, in LLVM IR; a part of call_text.py."""

TEXT = """
define internal ptr @make(ptr %words, i64 %number, ptr %place, ptr %datum) #0 {
entry:
  %first = call i64 @word(ptr %words, i64 W_RESULTS_AT)
  %start = getelementptr i64, ptr %words, i64 %first
  %offset = mul i64 %number, 3
  %result = getelementptr i64, ptr %start, i64 %offset
  %type = load ptr, ptr %result
  %maker = call ptr @pointer(ptr %result, i64 1)
  %table_number = call i64 @word(ptr %result, i64 2)
  %table = getelementptr i64, ptr %words, i64 %table_number
  %small = icmp eq ptr %maker, null
  br i1 %small, label %here, label %there
here:
  %descr = load ptr, ptr %table
  %rank = call i64 @word(ptr %table, i64 1)
  %ndim = trunc i64 %rank to i32
  %shape = getelementptr i64, ptr %table, i64 2
  call void INCREF(ptr %descr)
  %new = call ptr NEW_FROM_DESCR(ptr NDARRAY, ptr %descr, i32 %ndim, ptr %shape, ptr null, ptr null,
    i32 0, ptr null)
  br label %have
there:
  %given = call ptr CALL_NO_ARGS(ptr %maker)
  br label %have
have:
  %buffer = phi ptr [ %new, %here ], [ %given, %there ]
  %failed = icmp eq ptr %buffer, null
  br i1 %failed, label %none, label %wrap
wrap:
  %array = call ptr GENERIC_ALLOC(ptr ARRAY_TYPE, i64 0)
  %unwrapped = icmp eq ptr %array, null
  br i1 %unwrapped, label %drop, label %fill
drop:
  call void DECREF(ptr %buffer)
  br label %none
none:
  ret ptr null
fill:
  %buffer_at = getelementptr i8, ptr %array, i64 SLOT_BUFFER
  %copy_at = getelementptr i8, ptr %array, i64 SLOT_COPY
  %type_at = getelementptr i8, ptr %array, i64 SLOT_TYPE
  %place_at = getelementptr i8, ptr %array, i64 SLOT_PLACE
  call void INCREF(ptr NONE)
  call void INCREF(ptr %type)
  call void INCREF(ptr %place)
  store ptr %buffer, ptr %buffer_at
  store ptr NONE, ptr %copy_at
  store ptr %type, ptr %type_at
  store ptr %place, ptr %place_at
  %address = call ptr @field(ptr %buffer, i64 DATA)
  store ptr %address, ptr %datum
  ret ptr %array
}

; An arena that no other call uses; a new one where there is none. One that is too small is let go:
; kept below larger ones, it would be found again and again, and the list would grow.
define internal ptr @take_arena(ptr %words, i64 %bytes) #0 {
entry:
  %arenas = call ptr @pointer(ptr %words, i64 W_ARENAS)
  %size_at = getelementptr i8, ptr %arenas, i64 SIZE
  %size = load i64, ptr %size_at
  %some = icmp sgt i64 %size, 0
  br i1 %some, label %take, label %fresh
take:
  %last = sub i64 %size, 1
  %arena = call ptr LIST_ITEM(ptr %arenas, i64 %last)
  call void INCREF(ptr %arena)
  %code = call i32 LIST_SET_SLICE(ptr %arenas, i64 %last, i64 %size, ptr null)
  %done = icmp eq i32 %code, 0
  br i1 %done, label %owned, label %failed
owned:
  %shape = call ptr @field(ptr %arena, i64 SHAPE)
  %room = load i64, ptr %shape
  %enough = icmp sge i64 %room, %bytes
  br i1 %enough, label %give, label %too_small
give:
  ret ptr %arena
too_small:
  call void DECREF(ptr %arena)
  br label %fresh
failed:
  call void DECREF(ptr %arena)
  ret ptr null
fresh:
  %maker = call ptr @pointer(ptr %words, i64 W_ARENA_MAKER)
  %made = call ptr CALL_NO_ARGS(ptr %maker)
  ret ptr %made
}

define internal ptr @build(ptr %words, ptr %made) #0 {
entry:
  %count = call i64 @word(ptr %words, i64 W_BUILD)
  %first = call i64 @word(ptr %words, i64 W_BUILD_AT)
  %start = getelementptr i64, ptr %words, i64 %first
  %stack = alloca ptr, i64 %count
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %push ]
  %top = phi i64 [ 0, %entry ], [ %top_next, %push ]
  %leaf = phi i64 [ 0, %entry ], [ %leaf_next, %push ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %step, label %done
step:
  %offset = mul i64 %k, 3
  %node = getelementptr i64, ptr %start, i64 %offset
  %code = load i64, ptr %node
  %length = call i64 @word(ptr %node, i64 1)
  %keys = call ptr @pointer(ptr %node, i64 2)
  %is_leaf = icmp eq i64 %code, B_LEAF
  br i1 %is_leaf, label %take, label %inner
take:
  %made_at = getelementptr ptr, ptr %made, i64 %leaf
  %array = load ptr, ptr %made_at
  %leaf_more = add i64 %leaf, 1
  br label %push
inner:
  %base = sub i64 %top, %length
  %children = getelementptr ptr, ptr %stack, i64 %base
  %node_made = call ptr @join(i64 %code, i64 %length, ptr %keys, ptr %children)
  %failed = icmp eq ptr %node_made, null
  br i1 %failed, label %undo, label %push
push:
  %object = phi ptr [ %array, %take ], [ %node_made, %inner ]
  %place = phi i64 [ %top, %take ], [ %base, %inner ]
  %leaf_next = phi i64 [ %leaf_more, %take ], [ %leaf, %inner ]
  %at = getelementptr ptr, ptr %stack, i64 %place
  store ptr %object, ptr %at
  %top_next = add i64 %place, 1
  %next = add i64 %k, 1
  br label %head
done:
  %result = load ptr, ptr %stack
  %finish = call ptr @pointer(ptr %words, i64 W_FINISH)
  %plain = icmp eq ptr %finish, null
  br i1 %plain, label %give, label %call
give:
  ret ptr %result
call:
  %finished = call ptr CALL_ONE_ARG(ptr %finish, ptr %result)
  call void DECREF(ptr %result)
  ret ptr %finished
undo:
  call void @drop(ptr %stack, i64 0, i64 %base)
  %all = call i64 @word(ptr %words, i64 W_RESULTS)
  call void @drop(ptr %made, i64 %leaf, i64 %all)
  ret ptr null
}

define internal void @drop(ptr %objects, i64 %begin, i64 %end) #0 {
entry:
  br label %head
head:
  %k = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %k, %end
  br i1 %more, label %body, label %done
body:
  %at = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %at
  call void DECREF(ptr %object)
  %next = add i64 %k, 1
  br label %head
done:
  ret void
}

; A node over its children, whose references it takes; null after an error, and then they are gone.
define internal ptr @join(i64 %code, i64 %length, ptr %keys, ptr %children) #0 {
entry:
  switch i64 %code, label %none [
    i64 B_TUPLE, label %tuple
    i64 B_LIST, label %list
    i64 B_DICT, label %dict
  ]
none:
  call void INCREF(ptr NONE)
  ret ptr NONE
tuple:
  %new_tuple = call ptr TUPLE_NEW(i64 %length)
  br label %filling
list:
  %new_list = call ptr LIST_NEW(i64 %length)
  br label %filling
dict:
  %new_dict = call ptr DICT_NEW()
  br label %filling
filling:
  %node = phi ptr [ %new_tuple, %tuple ], [ %new_list, %list ], [ %new_dict, %dict ]
  %failed = icmp eq ptr %node, null
  br i1 %failed, label %no_node, label %head
no_node:
  call void @drop(ptr %children, i64 0, i64 %length)
  ret ptr null
head:
  %k = phi i64 [ 0, %filling ], [ %next, %follow ]
  %more = icmp slt i64 %k, %length
  br i1 %more, label %body, label %done
body:
  %at = getelementptr ptr, ptr %children, i64 %k
  %child = load ptr, ptr %at
  %next = add i64 %k, 1
  switch i64 %code, label %into_dict [
    i64 B_TUPLE, label %into_tuple
    i64 B_LIST, label %into_list
  ]
into_tuple:
  call i32 TUPLE_SET(ptr %node, i64 %k, ptr %child)
  br label %follow
into_list:
  call i32 LIST_SET(ptr %node, i64 %k, ptr %child)
  br label %follow
into_dict:
  %key_offset = mul i64 %k, 8
  %key_at = add i64 %key_offset, TUPLE_ITEMS
  %key = call ptr @field(ptr %keys, i64 %key_at)
  %set = call i32 DICT_SET(ptr %node, ptr %key, ptr %child)
  call void DECREF(ptr %child)
  %is_set = icmp eq i32 %set, 0
  br i1 %is_set, label %follow, label %undo
follow:
  br label %head
done:
  ret ptr %node
undo:
  call void DECREF(ptr %node)
  call void @drop(ptr %children, i64 %next, i64 %length)
  ret ptr null
}
"""
