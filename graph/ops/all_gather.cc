// all_gather_start, all_gather_wait: parameters that each rank has updated a part of, on all ranks.

#include "halftone/graph/ops/support/all_reduce.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"
#include "halftone/graph/ops/support/shards.h"

namespace halftone::ops {
namespace {

constexpr char kGatherSource[] =
    "MPI 3.1, 5.7 (MPI_Allgatherv); Rajbhandari et al., \"ZeRO\", arXiv:1910.02054, 5.1";

using Dims = std::vector<int64_t>;

Types InferGatherStart(const ir::InferContext& ctx) {
  HT_ASSIGN_OR_RETURN(const DType dtype,
                      NamedFloat(ctx, ctx.inputs.empty() ? DType::kF32 : ctx.inputs[0].dtype));
  HT_ASSIGN_OR_RETURN(const ShardLayout layout, ShardLayout::Of(ctx.op, ctx.attrs));
  const std::vector<size_t> own = layout.OwnedBy(ctx.attrs.GetInt("rank"));
  if (ctx.inputs.size() != own.size()) {
    return OpError(ctx, ctx.inputs.size(), " inputs; expected the ", own.size(),
                   " that this rank owns");
  }
  for (size_t i = 0; i < own.size(); ++i) {
    const ir::ValueType expected{dtype, layout.pieces[own[i]].shape};
    if (ctx.inputs[i].dtype == dtype && ctx.inputs[i].shape == expected.shape) continue;
    return OpError(ctx, "input ", i, " is ", ctx.inputs[i], "; expected ", expected.ToString(),
                   ", as dtype and shapes say");
  }
  HT_ASSIGN_OR_RETURN(Shape shape, MakeShape(ctx, Dims{layout.elements()}));
  return OneType(dtype, std::move(shape));
}

Types InferGatherWait(const ir::InferContext& ctx) {
  if (ctx.inputs.size() != 1) return OpError(ctx, ctx.inputs.size(), " inputs; expected one");
  HT_ASSIGN_OR_RETURN(const ShardLayout layout, ShardLayout::Of(ctx.op, ctx.attrs));
  if (ctx.inputs[0].shape.rank() != 1 || ctx.inputs[0].shape[0] != layout.elements()) {
    return OpError(ctx, "buffer is ", ctx.inputs[0], "; expected [", layout.elements(),
                   "], as shapes and owners say");
  }
  std::vector<ir::ValueType> types;
  const auto count = static_cast<int64_t>(layout.pieces.size());
  for (const int64_t i : ctx.attrs.GetInts("pieces")) {
    if (i < 0 || i >= count) {
      return InvalidArgument(ctx.op, ": piece ", i, "; expected 0..", count - 1);
    }
    types.push_back({ctx.inputs[0].dtype, layout.pieces[static_cast<size_t>(i)].shape});
  }
  return types;
}

std::vector<ir::AttrSpec> GatherAttrs() {
  return {Required("ranks", ir::AttrType::kInt, "processes of the job"),
          Required("rank", ir::AttrType::kInt, "this one's number"),
          Required("shapes", ir::AttrType::kStrings, "of all parameters: \"[8,16]\""),
          Required("owners", ir::AttrType::kInts, "the rank that has the new value of each")};
}

ir::OpRecord GatherStartRecord() {
  ir::OpRecord r;
  r.name = "all_gather_start";
  r.no_gradient = kAfterGradients;
  r.doc =
      "Copies the parameters that this rank owns into one buffer and begins to send them to the other "
      "processes of the job and to take theirs; all_gather_wait gives them. Meanwhile the buffer belongs to the "
      "exchange. Shapes: a part for each rank, as reduce_scatter_start has them";
  r.source = kGatherSource;
  r.inputs = {{"x", ir::kFloats, "those of `shapes` whose owner is `rank`", /*optional=*/false,
               /*variadic=*/true}};
  r.outputs = {{"buffer", "for one all_gather_wait"}};
  r.attrs = GatherAttrs();
  r.attrs.push_back(Optional("dtype", std::string(),
                             "of the parameters, in which they travel; empty: x's, f32 without x"));
  r.infer = InferGatherStart;
  r.amp = Untouched("made when precision is decided", {});
  r.communicates = true;
  r.cost = [](const ir::Node& node) {
    ir::Cost cost;
    for (const ir::Value& x : node.inputs()) {
      cost.bytes += static_cast<double>(x.type().num_bytes());
    }
    cost.bytes += static_cast<double>(node.output_type().num_bytes());
    return cost;
  };
  r.decompose = [](ir::Builder& b, const std::vector<ir::Expr>& inputs,
                   const ir::Attributes& attrs) -> std::vector<ir::Expr> {
    const absl::Status alone = CheckAlone("all_gather_start", attrs);
    if (!alone.ok()) b.Fail(alone);
    const DType dtype = ParseDType(attrs.GetString("dtype"))
                            .value_or(inputs.empty() ? DType::kF32 : inputs[0].dtype());
    std::vector<ir::Expr> flat;
    int64_t left = ShardLayout::Of("all_gather_start", attrs)->elements();
    for (const ir::Expr& x : inputs) {
      flat.push_back(b.Op("reshape", {x}, {{"shape", Dims{x.shape().num_elements()}}}));
      left -= x.shape().num_elements();
    }
    flat.push_back(b.Constant(Tensor::Zeros(dtype, Shape({left}))));
    return {b.Op("concat", flat, {{"axis", int64_t{0}}})};
  };
  return r;
}

ir::OpRecord GatherWaitRecord() {
  ir::OpRecord r;
  r.name = "all_gather_wait";
  r.no_gradient = kAfterGradients;
  r.doc =
      "Waits until a buffer has the parameters of all ranks and gives those asked for. Shapes: those of "
      "`shapes` at the positions `pieces`";
  r.source = kGatherSource;
  // Variadic for as many outputs as there are pieces.
  r.inputs = {
      {"buffer", ir::kFloats, "of all_gather_start; one", /*optional=*/false, /*variadic=*/true}};
  r.outputs = {{"y", "one for each of `pieces`"}};
  r.attrs = GatherAttrs();
  r.attrs.push_back(Required("pieces", ir::AttrType::kInts, "positions in `shapes`"));
  r.infer = InferGatherWait;
  r.amp = Untouched("made when precision is decided", {0});
  r.communicates = true;
  r.has_side_effect = true;  // also a wait that gives nothing ends what others receive
  r.decompose = [](ir::Builder& b, const std::vector<ir::Expr>& inputs,
                   const ir::Attributes& attrs) -> std::vector<ir::Expr> {
    const absl::Status alone = CheckAlone("all_gather_wait", attrs);
    if (!alone.ok()) b.Fail(alone);
    const ShardLayout layout = *ShardLayout::Of("all_gather_wait", attrs);
    std::vector<ir::Expr> weights;
    for (const int64_t i : attrs.GetInts("pieces")) {
      const ShardLayout::Piece& piece = layout.pieces[static_cast<size_t>(i)];
      const ir::Expr part = b.Op("slice", {inputs[0]},
                                 {{"starts", Dims{piece.offset}},
                                  {"limits", Dims{piece.offset + piece.shape.num_elements()}},
                                  {"strides", Dims{1}}});
      weights.push_back(b.Op("reshape", {part}, {{"shape", ToInts(piece.shape)}}));
    }
    return weights;
  };
  return r;
}

}  // namespace

void Register_all_gather(ir::OpRegistry& registry) {
  AddOp(registry, GatherStartRecord());
  AddOp(registry, GatherWaitRecord());
}

}  // namespace halftone::ops
