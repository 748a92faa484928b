// random_uniform, random_normal, bernoulli: numbers from Philox words.
#include <cmath>

#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

// What is said of the words, alike for all.
constexpr char kWords[] =
    " Element i takes word i mod 4 of PhiloxBlock(seed, run_count, i / 4), whose upper 24 bits times "
    "2^-24 are u in [0, 1): the same on every device and in every dtype.";

Types InferMade(const ir::InferContext& ctx, const char* first, const char* second) {
  const DType dtype = ctx.attrs.GetDType("dtype");
  if (!IsFloat(dtype)) {
    return OpError(ctx, "dtype is ", Name(dtype), "; expected f64 f32 f16 bf16");
  }
  for (const char* attr : {first, second}) {
    HT_RETURN_IF_ERROR(CheckFloat(ctx, attr,
                                  std::abs(ctx.attrs.GetFloat(attr)) <= MaxFinite(DType::kF32),
                                  "a number that is finite in f32"));
  }
  HT_ASSIGN_OR_RETURN(Shape shape, ShapeOf(ctx, "shape"));
  return OneType(dtype, std::move(shape));
}

Types InferUniform(const ir::InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckFloat(
      ctx, "high", ctx.attrs.GetFloat("low") <= ctx.attrs.GetFloat("high"), "at least low"));
  return InferMade(ctx, "low", "high");
}

Types InferNormal(const ir::InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "std", ctx.attrs.GetFloat("std") >= 0, "0 or more"));
  return InferMade(ctx, "mean", "std");
}

ir::OpRecord RandomOp(const char* name, std::string doc, const char* source) {
  ir::OpRecord op;
  op.name = name;
  op.doc = std::move(doc);
  op.source = source;
  op.outputs = {{"y", ""}};
  op.attrs = {Required("seed", ir::AttrType::kInt, "key of the random stream")};
  op.cost = FlopsPerOutput(20);
  op.is_random = true;
  return op;
}

// One that makes a tensor of nothing.
ir::OpRecord MakingOp(const char* name, std::string doc, const char* source) {
  ir::OpRecord op = RandomOp(name, std::move(doc), source);
  op.attrs.push_back(Required("shape", ir::AttrType::kInts, "shape of y"));
  op.attrs.push_back(Optional("dtype", DType::kF32, "dtype of y: f64, f32, f16 or bf16"));
  op.amp = Deny("has no operands, and its dtype is an attribute");
  op.no_gradient = "has no operand to differentiate by";
  return op;
}

}  // namespace

void Register_random(ir::OpRegistry& r) {
  ir::OpRecord uniform = MakingOp(
      "random_uniform",
      Concat("y = low + (high - low) u in f32 (f64 for f64), rounded to dtype.", kWords),
      "Salmon, Moraes, Dror, Shaw: \"Parallel random numbers: as easy as 1, 2, 3\", SC 2011");
  uniform.attrs.push_back(Optional("low", 0.0, "smallest number"));
  uniform.attrs.push_back(Optional("high", 1.0, "end of the range; rounding may reach it"));
  uniform.infer = InferUniform;
  AddOp(r, std::move(uniform));

  ir::OpRecord normal = MakingOp(
      "random_normal",
      Concat(
          "y = mean + std z in f32 (f64 for f64), rounded to dtype; z of elements 2k and 2k + 1 is "
          "r cos(2 pi v) and r sin(2 pi v) with r = sqrt(-2 ln(u + 2^-24)), u and v those of the "
          "two elements.",
          kWords),
      "Box, Muller: \"A note on the generation of random normal deviates\", Annals of Mathematical "
      "Statistics 29, 1958");
  normal.attrs.push_back(Optional("mean", 0.0, ""));
  normal.attrs.push_back(Optional("std", 1.0, "standard deviation, 0 or more"));
  normal.infer = InferNormal;
  AddOp(r, std::move(normal));

  ir::OpRecord bernoulli = RandomOp(
      "bernoulli",
      Concat("y = 1 where u < x, else 0: 1 with probability x, 0 where x is NaN. No gradient.",
             kWords),
      "https://pytorch.org/docs/stable/generated/torch.bernoulli.html");
  bernoulli.inputs = {{"x", ir::kFloats, "probabilities, any shape"}};
  bernoulli.infer = InferLikeFirst;
  bernoulli.no_gradient = "a draw is flat almost everywhere in its probability";
  bernoulli.amp = Deny("a rounded probability is another one");
  AddOp(r, std::move(bernoulli));
}

}  // namespace halftone::ops
