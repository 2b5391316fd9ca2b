"""Whether arguments are those of a kept call, in LLVM IR; a part of call_text.py."""

TEXT = """
define internal i1 @match(ptr %words, ptr %argv, ptr %frame) #0 {
entry:
  %f.nodes = getelementptr %Frame, ptr %frame, i32 0, i32 0
  %f.data = getelementptr %Frame, ptr %frame, i32 0, i32 1
  %f.scratch = getelementptr %Frame, ptr %frame, i32 0, i32 2
  %f.place = getelementptr %Frame, ptr %frame, i32 0, i32 4
  %nodes = load ptr, ptr %f.nodes
  %data = load ptr, ptr %f.data
  %scratch = load ptr, ptr %f.scratch
  %count = call i64 @word(ptr %words, i64 W_NODES)
  %first = call i64 @word(ptr %words, i64 W_NODES_AT)
  %node_start = getelementptr i64, ptr %words, i64 %first
  br label %head
head:
  %k = phi i64 [ 0, %entry ], [ %next, %follow ]
  %leaf = phi i64 [ 0, %entry ], [ %leaf_next, %follow ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %fetch, label %yes
fetch:
  %offset = mul i64 %k, NODE_WORDS
  %node = getelementptr i64, ptr %node_start, i64 %offset
  %fetch_code = load i64, ptr %node
  %parent_number = call i64 @word(ptr %node, i64 1)
  %key = call i64 @word(ptr %node, i64 2)
  %key_pointer = inttoptr i64 %key to ptr
  %check_code = call i64 @word(ptr %node, i64 3)
  %expected = call i64 @word(ptr %node, i64 4)
  %extra = call i64 @word(ptr %node, i64 5)
  %parent_at = getelementptr ptr, ptr %nodes, i64 %parent_number
  switch i64 %fetch_code, label %fetched [
    i64 F_ARGUMENT, label %from_arguments
    i64 F_TUPLE, label %from_tuple
    i64 F_LIST, label %from_list
    i64 F_DICT, label %from_dict
  ]
from_arguments:
  %argument_at = getelementptr ptr, ptr %argv, i64 %key
  %argument = load ptr, ptr %argument_at
  br label %fetched
from_tuple:
  %tuple = load ptr, ptr %parent_at
  %tuple_items = getelementptr i8, ptr %tuple, i64 TUPLE_ITEMS
  %tuple_item_at = getelementptr ptr, ptr %tuple_items, i64 %key
  %tuple_item = load ptr, ptr %tuple_item_at
  br label %fetched
from_list:
  %list = load ptr, ptr %parent_at
  %list_item = call ptr LIST_ITEM(ptr %list, i64 %key)
  br label %fetched
from_dict:
  %dict = load ptr, ptr %parent_at
  %value = call ptr DICT_ITEM(ptr %dict, ptr %key_pointer)
  br label %fetched
fetched:
  %object = phi ptr [ %key_pointer, %fetch ], [ %argument, %from_arguments ],
    [ %tuple_item, %from_tuple ], [ %list_item, %from_list ], [ %value, %from_dict ]
  %is_there = icmp ne ptr %object, null
  br i1 %is_there, label %there, label %missing
missing:
  %error = call ptr ERROR()
  %absent = icmp eq ptr %error, null
  br i1 %absent, label %no, label %failed
failed:
  ; A key's comparison may have failed: the general way makes its own error of that. What is no
  ; Exception, as an interrupt, stays set, and @attempt raises it.
  %ordinary = call i32 ERROR_MATCHES(ptr EXCEPTION)
  %is_ordinary = icmp ne i32 %ordinary, 0
  br i1 %is_ordinary, label %forget, label %no
forget:
  call void CLEAR_ERROR()
  ret i1 false
there:
  %here = getelementptr ptr, ptr %nodes, i64 %k
  store ptr %object, ptr %here
  %type = call ptr @field(ptr %object, i64 TYPE)
  %datum = getelementptr ptr, ptr %data, i64 %leaf
  %number = getelementptr i64, ptr %scratch, i64 %leaf
  switch i64 %check_code, label %no [
    i64 C_SAME, label %same
    i64 C_SEQUENCE, label %sequence
    i64 C_DICT, label %dictionary
    i64 C_ARRAY, label %array
    i64 C_NUMPY, label %numpy
    i64 C_FLOAT, label %float
    i64 C_INT, label %int
    i64 C_BOOL, label %bool
  ]
same:
  %expected_object = inttoptr i64 %expected to ptr
  %is_same = icmp eq ptr %object, %expected_object
  br i1 %is_same, label %node_next, label %no
sequence:
  %class = inttoptr i64 %extra to ptr
  %is_class = icmp eq ptr %type, %class
  br i1 %is_class, label %sized, label %no
sized:
  %size_at = getelementptr i8, ptr %object, i64 SIZE
  %size = load i64, ptr %size_at
  %as_long = icmp eq i64 %size, %expected
  br i1 %as_long, label %container, label %no
dictionary:
  %is_dict = icmp eq ptr %type, DICT_TYPE
  br i1 %is_dict, label %dict_sized, label %no
dict_sized:
  %dict_size = call i64 DICT_SIZE(ptr %object)
  %as_large = icmp eq i64 %dict_size, %expected
  br i1 %as_large, label %container, label %no
container:
  call void @keep(ptr %frame, ptr %object)
  br label %node_next
array:
  %is_array = icmp eq ptr %type, ARRAY_TYPE
  br i1 %is_array, label %typed, label %no
typed:
  %array_type = call ptr @field(ptr %object, i64 SLOT_TYPE)
  %expected_type = inttoptr i64 %expected to ptr
  %is_typed = icmp eq ptr %array_type, %expected_type
  br i1 %is_typed, label %placed, label %no
placed:
  %place = call ptr @field(ptr %object, i64 SLOT_PLACE)
  %is_free = icmp eq ptr %place, FREE
  br i1 %is_free, label %buffer, label %elsewhere
elsewhere:
  %is_committed = icmp eq ptr %place, COMMITTED
  br i1 %is_committed, label %commit, label %no
commit:
  store ptr %place, ptr %f.place
  br label %buffer
buffer:
  %held = call ptr @field(ptr %object, i64 SLOT_BUFFER)
  %unset = icmp eq ptr %held, null
  br i1 %unset, label %no, label %memory
numpy:
  br label %memory
memory:
  %lent = phi ptr [ %held, %buffer ], [ %object, %numpy ]
  %table = getelementptr i64, ptr %words, i64 %extra
  %fits = call i1 @fits(ptr %lent, ptr %table)
  br i1 %fits, label %lend, label %no
lend:
  call void @keep(ptr %frame, ptr %lent)
  %address = call ptr @field(ptr %lent, i64 DATA)
  store ptr %address, ptr %datum
  br label %leaf_done
float:
  %is_float = icmp eq ptr %type, FLOAT_TYPE
  br i1 %is_float, label %float_read, label %no
float_read:
  %f = call double FLOAT_VALUE(ptr %object)
  %is_wide = icmp eq i64 %extra, 8
  br i1 %is_wide, label %float_wide, label %float_narrow
float_wide:
  store double %f, ptr %number
  br label %number_done
float_narrow:
  %magnitude = call double @llvm.fabs.f64(double %f)
  %too_large = fcmp ogt double %magnitude, 0x47EFFFFFE0000000
  %narrow = fptrunc double %f to float
  store float %narrow, ptr %number
  br i1 %too_large, label %no, label %number_done
int:
  %is_int = icmp eq ptr %type, INT_TYPE
  br i1 %is_int, label %int_read, label %no
int_read:
  store i64 0, ptr %number
  %i = call i64 INT_VALUE(ptr %object, ptr %number)
  %overflow = load i32, ptr %number
  %in_range = icmp eq i32 %overflow, 0
  br i1 %in_range, label %int_store, label %no
int_store:
  store i64 %i, ptr %number
  %i_is_wide = icmp eq i64 %extra, 8
  br i1 %i_is_wide, label %number_done, label %int_narrow
int_narrow:
  %low = trunc i64 %i to i32
  %again = sext i32 %low to i64
  store i32 %low, ptr %number
  %kept_all = icmp eq i64 %again, %i
  br i1 %kept_all, label %number_done, label %no
bool:
  %is_bool = icmp eq ptr %type, BOOL_TYPE
  br i1 %is_bool, label %bool_read, label %no
bool_read:
  %truth = icmp eq ptr %object, TRUE
  %byte = zext i1 %truth to i8
  store i8 %byte, ptr %number
  br label %number_done
number_done:
  store ptr %number, ptr %datum
  br label %leaf_done
leaf_done:
  %leaf_more = add i64 %leaf, 1
  br label %follow
node_next:
  br label %follow
follow:
  %leaf_next = phi i64 [ %leaf_more, %leaf_done ], [ %leaf, %node_next ]
  %next = add i64 %k, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether an object is a dense array of NumPy's with the dtype and shape of a table.
define internal i1 @fits(ptr %array, ptr %table) #0 {
entry:
  %type = call ptr @field(ptr %array, i64 TYPE)
  %is_array = icmp eq ptr %type, NDARRAY
  br i1 %is_array, label %dtype, label %no
dtype:
  %descr = call ptr @field(ptr %array, i64 DESCR)
  %wanted = load ptr, ptr %table
  %is_dtype = icmp eq ptr %descr, %wanted
  br i1 %is_dtype, label %dense, label %no
dense:
  %flags_at = getelementptr i8, ptr %array, i64 FLAGS
  %flags = load i32, ptr %flags_at
  %of_interest = and i32 %flags, REQUIRED_FLAGS
  %is_dense = icmp eq i32 %of_interest, REQUIRED_FLAGS
  br i1 %is_dense, label %rank, label %no
rank:
  %ndim_at = getelementptr i8, ptr %array, i64 NDIM
  %ndim = load i32, ptr %ndim_at
  %axes = sext i32 %ndim to i64
  %rank_wanted = call i64 @word(ptr %table, i64 1)
  %is_rank = icmp eq i64 %axes, %rank_wanted
  %shape = call ptr @field(ptr %array, i64 SHAPE)
  %lengths = getelementptr i64, ptr %table, i64 2
  br i1 %is_rank, label %head, label %no
head:
  %k = phi i64 [ 0, %rank ], [ %next, %axis ]
  %more = icmp slt i64 %k, %axes
  br i1 %more, label %axis, label %yes
axis:
  %length = call i64 @word(ptr %shape, i64 %k)
  %expected = call i64 @word(ptr %lengths, i64 %k)
  %next = add i64 %k, 1
  %same = icmp eq i64 %length, %expected
  br i1 %same, label %head, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
"""
