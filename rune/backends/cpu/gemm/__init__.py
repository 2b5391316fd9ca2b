"""Matrix products in LLVM IR.

product    a product as a plan calls it           small     small products of drafts, as loops
tile       a tile of the result in registers      library   pieces of products, on demand
panels     operands packed into panels            packing   the same for strided operands
blocks     the loops around tiles                 strided   products of views
"""
