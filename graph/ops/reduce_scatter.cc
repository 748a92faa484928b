// reduce_scatter_start, reduce_scatter_wait: gradients summed over the processes of a job, each for the
// one rank that updates by it, while other nodes run.

#include "halftone/graph/ops/support/all_reduce.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"
#include "halftone/graph/ops/support/shards.h"

namespace halftone::ops {
namespace {

constexpr char kScatterSource[] =
    "MPI 3.1, 5.10 (MPI_Reduce_scatter); Rajbhandari et al., \"ZeRO\", arXiv:1910.02054, 5.1 (each rank "
    "the state of its part)";

using Dims = std::vector<int64_t>;

Types InferScatterStart(const ir::InferContext& ctx) {
  HT_RETURN_IF_ERROR(RequireSameDType(ctx));
  HT_RETURN_IF_ERROR(CheckReduction(ctx));
  const DType wire = ctx.attrs.GetDType("wire");
  if (!ir::kFloats.Contains(wire)) {
    return InvalidArgument(ctx.op, ": wire is ", Name(wire), "; expected f64, f32, f16 or bf16");
  }
  HT_ASSIGN_OR_RETURN(const ShardLayout layout, ShardLayout::Of(ctx.op, ctx.attrs));
  if (ctx.inputs.size() != layout.pieces.size()) {
    return OpError(ctx, ctx.inputs.size(), " inputs; expected one for each of ",
                   layout.pieces.size(), " shapes");
  }
  for (size_t i = 0; i < ctx.inputs.size(); ++i) {
    if (ctx.inputs[i].shape == layout.pieces[i].shape) continue;
    return OpError(ctx, "input ", i, " is ", ctx.inputs[i], "; expected ",
                   layout.pieces[i].shape.ToString(), ", as `shapes` says");
  }
  HT_ASSIGN_OR_RETURN(Shape shape,
                      MakeShape(ctx, Dims{layout.ScatterElements(ctx.attrs.GetInt("rank"))}));
  return OneType(wire, std::move(shape));
}

Types InferScatterWait(const ir::InferContext& ctx) {
  if (ctx.inputs.size() != 1) return OpError(ctx, ctx.inputs.size(), " inputs; expected one");
  HT_ASSIGN_OR_RETURN(const ShardLayout layout, ShardLayout::Of(ctx.op, ctx.attrs));
  const int64_t rank = ctx.attrs.GetInt("rank"), expected = layout.ScatterElements(rank);
  if (ctx.inputs[0].shape.rank() != 1 || ctx.inputs[0].shape[0] != expected) {
    return OpError(ctx, "buffer is ", ctx.inputs[0], "; expected [", expected,
                   "], as shapes, owners and rank say");
  }
  HT_ASSIGN_OR_RETURN(const DType dtype, NamedFloat(ctx, ctx.inputs[0].dtype));
  std::vector<ir::ValueType> types;
  for (const size_t i : layout.OwnedBy(rank)) types.push_back({dtype, layout.pieces[i].shape});
  return types;
}

std::vector<ir::AttrSpec> ScatterAttrs() {
  return {Required("ranks", ir::AttrType::kInt, "processes of the job"),
          Required("rank", ir::AttrType::kInt, "this one's number"),
          Required("shapes", ir::AttrType::kStrings, "of all gradients: \"[8,16]\""),
          Required("owners", ir::AttrType::kInts, "the rank that gets each")};
}

ir::OpRecord ScatterStartRecord() {
  ir::OpRecord r;
  r.name = "reduce_scatter_start";
  r.no_gradient = kAfterGradients;
  r.doc =
      "Copies gradients into one buffer, as `wire`, and begins to reduce each over the processes of the "
      "job for the one that owns it; reduce_scatter_wait gives what comes of it. Meanwhile the buffer belongs to "
      "the reduction. Shapes: a part for each rank, of the elements of the gradients that it owns and the word "
      "of a failed rank, rounded up to a multiple of 32; behind them, of several ranks, ranks - 1 times the own "
      "part, for what comes from others, and 32";
  r.source = kScatterSource;
  r.inputs = {{"dx", ir::kFloats, "of one dtype", /*optional=*/false, /*variadic=*/true}};
  r.outputs = {{"buffer", "for one reduce_scatter_wait"}};
  r.attrs = ScatterAttrs();
  r.attrs.push_back(
      Optional("reduction", std::string("mean"), "\"mean\" or \"sum\" over the ranks"));
  r.attrs.push_back(Optional("wire", DType::kF32,
                             "in which they travel; sums are f32 (f64 for f64) and rounded once"));
  r.infer = InferScatterStart;
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
    const absl::Status alone = CheckAlone("reduce_scatter_start", attrs);
    if (!alone.ok()) b.Fail(alone);
    const ShardLayout layout = *ShardLayout::Of("reduce_scatter_start", attrs);
    const DType wire = attrs.GetDType("wire");
    std::vector<ir::Expr> flat;
    int64_t left = layout.elements();
    for (const ir::Expr& x : inputs) {
      const int64_t elements = x.shape().num_elements();
      flat.push_back(b.Cast(b.Op("reshape", {x}, {{"shape", Dims{elements}}}), wire));
      left -= elements;
    }
    flat.push_back(b.Constant(Tensor::Zeros(wire, Shape({left}))));
    return {b.Op("concat", flat, {{"axis", int64_t{0}}})};
  };
  return r;
}

ir::OpRecord ScatterWaitRecord() {
  ir::OpRecord r;
  r.name = "reduce_scatter_wait";
  r.no_gradient = kAfterGradients;
  r.doc =
      "Waits for the reduction of a buffer and gives the reduced gradients that this rank owns, with the bits that "
      "all_reduce_wait would give all ranks. The step ends here on every rank if the step of one has "
      "failed. Shapes: those of `shapes` whose owner is `rank`";
  r.source = kScatterSource;
  // Variadic for as many outputs as there are gradients.
  r.inputs = {{"buffer", ir::kFloats, "of reduce_scatter_start; one", /*optional=*/false,
               /*variadic=*/true}};
  r.outputs = {{"dx", "one for each that this rank owns"}};
  r.attrs = ScatterAttrs();
  r.attrs.push_back(Optional("dtype", std::string(), "of the gradients; empty: the buffer's"));
  r.infer = InferScatterWait;
  r.amp = Untouched("made when precision is decided", {0});
  r.communicates = true;
  r.has_side_effect = true;  // also a wait that gives nothing tells whether the step goes on
  r.decompose = [](ir::Builder& b, const std::vector<ir::Expr>& inputs,
                   const ir::Attributes& attrs) -> std::vector<ir::Expr> {
    const absl::Status alone = CheckAlone("reduce_scatter_wait", attrs);
    if (!alone.ok()) b.Fail(alone);
    const DType dtype = ParseDType(attrs.GetString("dtype")).value_or(inputs[0].dtype());
    std::vector<ir::Expr> gradients;
    const ShardLayout layout = *ShardLayout::Of("reduce_scatter_wait", attrs);
    for (const ShardLayout::Piece& piece : layout.pieces) {
      const ir::Expr part = b.Op("slice", {inputs[0]},
                                 {{"starts", Dims{piece.offset}},
                                  {"limits", Dims{piece.offset + piece.shape.num_elements()}},
                                  {"strides", Dims{1}}});
      gradients.push_back(b.Cast(b.Op("reshape", {part}, {{"shape", ToInts(piece.shape)}}), dtype));
    }
    return gradients;
  };
  return r;
}

}  // namespace

void Register_reduce_scatter(ir::OpRegistry& registry) {
  AddOp(registry, ScatterStartRecord());
  AddOp(registry, ScatterWaitRecord());
}

}  // namespace halftone::ops
