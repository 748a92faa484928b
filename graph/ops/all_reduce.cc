// all_reduce_start, all_reduce_wait: gradients summed over the processes of a job, while other nodes
// run. all_reduce: a value whose sum the next node reads.

#include "halftone/graph/ops/support/all_reduce.h"

#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

constexpr char kAllReduceSource[] =
    "MPI 3.1, 5.12.8 (MPI_Iallreduce); Li et al., \"PyTorch distributed\", arXiv:2006.15704 (buckets "
    "and overlap)";

Types InferStart(const ir::InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRanks(ctx));
  HT_RETURN_IF_ERROR(RequireSameDType(ctx));
  HT_RETURN_IF_ERROR(CheckReduction(ctx));
  const DType wire = ctx.attrs.GetDType("wire");
  if (!ir::kFloats.Contains(wire)) {
    return InvalidArgument(ctx.op, ": wire is ", Name(wire), "; expected f64, f32, f16 or bf16");
  }
  int64_t elements = 0;
  for (const ir::ValueType& x : ctx.inputs) elements += x.num_elements();
  if (elements > kMaxReduced) return OpError(ctx, elements, " elements; expected at most 2^39");
  const int64_t ranks = ctx.attrs.GetInt("ranks");
  const DType dtype = ranks == 1 && !ctx.inputs.empty() ? ctx.inputs[0].dtype : wire;
  HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, {AllReduceBufferElements(elements, ranks)}));
  return OneType(dtype, std::move(shape));
}

Types InferWait(const ir::InferContext& ctx) {
  HT_RETURN_IF_ERROR(CheckRanks(ctx));
  if (ctx.inputs.size() != 1) return OpError(ctx, ctx.inputs.size(), " inputs; expected one");
  const std::string& name = ctx.attrs.GetString("dtype");
  const DType own = ctx.inputs[0].dtype,
              dtype = name.empty() ? own : ParseDType(name).value_or(own);
  const int64_t ranks = ctx.attrs.GetInt("ranks");
  const bool fits = name.empty() || (name == Name(dtype) && ir::kFloats.Contains(dtype) &&
                                     (ranks > 1 || dtype == own));
  if (!fits) {
    return OpError(ctx, "dtype is \"", name, "\" of ", ctx.inputs[0], " of ", ranks,
                   " ranks; expected f64, f32, f16 or bf16, and the buffer's own of one rank");
  }
  std::vector<ir::ValueType> types;
  int64_t elements = 0;
  for (const std::string& text : ctx.attrs.Get<std::vector<std::string>>("shapes")) {
    HT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ParseExtents(ctx.op, text));
    HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, dims));
    types.push_back({dtype, std::move(shape)});
    elements += types.back().num_elements();
    if (elements > kMaxReduced) return OpError(ctx, elements, " elements; expected at most 2^39");
  }
  const int64_t expected = AllReduceBufferElements(elements, ranks);
  if (ctx.inputs[0].shape.rank() != 1 || ctx.inputs[0].shape[0] != expected) {
    return OpError(ctx, "buffer is ", ctx.inputs[0], "; expected [", expected,
                   "], as shapes and ranks say");
  }
  return types;
}

ir::OpRecord StartRecord() {
  ir::OpRecord r;
  r.name = "all_reduce_start";
  r.no_gradient = kAfterGradients;
  r.doc =
      "Copies gradients into one buffer, as `wire`, and begins to reduce it over the processes of the "
      "job; all_reduce_wait gives what comes of it. Meanwhile the buffer belongs to the reduction. "
      "Shapes: the gradients' elements one after the other, the word of a failed rank, and as much "
      "again for what comes from others: [2 ranks c], c = ceil((elements + 1) / ranks) rounded up to "
      "a multiple of 32. Of one rank: the elements alone, in the gradients' own dtype";
  r.source = kAllReduceSource;
  r.inputs = {{"dx", ir::kFloats, "of one dtype; none: only whether a rank has failed",
               /*optional=*/false, /*variadic=*/true}};
  r.outputs = {{"buffer", "for one all_reduce_wait"}};
  r.attrs = {
      Required("ranks", ir::AttrType::kInt, "processes of the job"),
      Optional("reduction", std::string("mean"), "\"mean\" or \"sum\" over the ranks"),
      Optional(
          "wire", DType::kF32,
          "in which they travel; sums are f32 (f64 for f64) and rounded once, by NCCL at each addition")};
  r.infer = InferStart;
  r.amp = Untouched("made when precision is decided; `wire` is the user's word", {});
  r.communicates = true;
  r.cost = [](const ir::Node& node) {
    ir::Cost cost;
    for (const ir::Value& x : node.inputs()) {
      cost.bytes += static_cast<double>(x.type().num_bytes());
      cost.flops += static_cast<double>(x.type().num_elements());
    }
    cost.bytes += static_cast<double>(node.output_type().num_bytes());
    return cost;
  };
  r.decompose = [](ir::Builder& b, const std::vector<ir::Expr>& inputs,
                   const ir::Attributes& attrs) -> std::vector<ir::Expr> {
    const absl::Status alone = CheckAlone("all_reduce_start", attrs);
    if (!alone.ok()) b.Fail(alone);
    if (inputs.empty()) {
      return {b.Constant(*Tensor::Allocate(attrs.GetDType("wire"), Shape({0})))};
    }
    std::vector<ir::Expr> flat;
    for (const ir::Expr& x : inputs) {
      flat.push_back(
          b.Op("reshape", {x}, {{"shape", std::vector<int64_t>{x.shape().num_elements()}}}));
    }
    return {b.Op("concat", flat, {{"axis", int64_t{0}}})};
  };
  return r;
}

ir::OpRecord WaitRecord() {
  ir::OpRecord r;
  r.name = "all_reduce_wait";
  r.no_gradient = kAfterGradients;
  r.doc =
      "Waits for the reduction of a buffer and gives the reduced gradients: dx_i, as all ranks have it, "
      "bit for bit. The step ends here on every rank if the step of one has failed. Shapes: those of "
      "`shapes`";
  r.source = kAllReduceSource;
  // Variadic for as many outputs as there are gradients.
  r.inputs = {{"buffer", ir::kFloats, "of all_reduce_start; one", /*optional=*/false,
               /*variadic=*/true}};
  r.outputs = {{"dx", "one for each of `shapes`"}};
  r.attrs = {Required("ranks", ir::AttrType::kInt, "processes of the job"),
             Optional("dtype", std::string(), "of the gradients; empty: the buffer's"),
             Required("shapes", ir::AttrType::kStrings, "of the gradients: \"[8,16]\"")};
  r.infer = InferWait;
  r.amp = Untouched("made when precision is decided", {0});
  r.communicates = true;
  r.has_side_effect = true;  // also a wait that gives nothing tells whether the step goes on
  r.decompose = [](ir::Builder& b, const std::vector<ir::Expr>& inputs,
                   const ir::Attributes& attrs) -> std::vector<ir::Expr> {
    const absl::Status alone = CheckAlone("all_reduce_wait", attrs);
    if (!alone.ok()) b.Fail(alone);
    std::vector<ir::Expr> gradients;
    int64_t start = 0;
    for (const std::string& text : attrs.Get<std::vector<std::string>>("shapes")) {
      const std::vector<int64_t> dims = ParseExtents("all_reduce_wait", text).value();
      int64_t elements = 1;
      for (const int64_t d : dims) elements *= d;
      const ir::Expr part = b.Op("slice", {inputs[0]},
                                 {{"starts", std::vector<int64_t>{start}},
                                  {"limits", std::vector<int64_t>{start + elements}},
                                  {"strides", std::vector<int64_t>{1}}});
      gradients.push_back(b.Op("reshape", {part}, {{"shape", dims}}));
      start += elements;
    }
    return gradients;
  };
  return r;
}

// y of every rank reads x of every rank, so dx of each is what all of them say: the same op, over dy.
ir::OpRecord NowRecord() {
  ir::OpRecord r;
  r.name = "all_reduce";
  r.doc =
      "y = the sum or mean of every rank's x, the same on all, bit for bit. Waits for the others; the step "
      "ends here on every rank if that of one has failed. Gradient: all_reduce of dy. Shapes: y as x";
  r.source = kAllReduceSource;
  r.inputs = {{"x", ir::kFloats, ""}};
  r.outputs = {{"y", "as x"}};
  r.attrs = {Required("ranks", ir::AttrType::kInt, "processes of the job"),
             Optional("reduction", std::string("mean"), "\"mean\" or \"sum\" over the ranks")};
  r.infer = [](const ir::InferContext& ctx) -> Types {
    HT_RETURN_IF_ERROR(CheckRanks(ctx));
    HT_RETURN_IF_ERROR(CheckReduction(ctx));
    return OneType(ctx.inputs[0].dtype, ctx.inputs[0].shape);
  };
  r.amp = Deny("sums over ranks are kept in f32");
  r.communicates = true;
  r.cost = FlopsPerOutput(1);
  r.gradient = [](ir::GradContext& c) {
    c.set_dx(0, c.b.Op("all_reduce", {c.dy(0)},
                       {{"ranks", c.attrs().GetInt("ranks")},
                        {"reduction", c.attrs().GetString("reduction")}}));
  };
  r.gradient_ops = {"all_reduce"};
  r.decompose = [](ir::Builder& b, const std::vector<ir::Expr>& inputs,
                   const ir::Attributes& attrs) -> std::vector<ir::Expr> {
    const absl::Status alone = CheckAlone("all_reduce", attrs);
    if (!alone.ok()) b.Fail(alone);
    return {b.Op("reshape", {inputs[0]}, {{"shape", ToInts(inputs[0].shape())}})};
  };
  return r;
}

}  // namespace

void Register_all_reduce(ir::OpRegistry& registry) {
  AddOp(registry, StartRecord());
  AddOp(registry, WaitRecord());
  AddOp(registry, NowRecord());
}

}  // namespace halftone::ops
