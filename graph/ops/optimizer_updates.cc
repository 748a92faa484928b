// The update ops, one parameter's step each or that of some of its rows, from the descriptions in
// support/optimizers.def.
#include "halftone/graph/ops/support/nn.h"
#include "halftone/graph/ops/support/optimizers.h"

namespace halftone::ops {
namespace {

using ir::InferContext;

constexpr ir::DTypeSet kStoredDTypes{DType::kF64, DType::kF32, DType::kBF16};

// The states in order, and behind them what their rounding keeps.
template <typename Update>
std::vector<StateInfo> AllStored(const Update& update) {
  std::vector<StateInfo> all = AllStates(update);
  all.push_back({kCompensation, kCompensation, 0,
                 "as param; exactly with rounding kahan, which adds it to param and puts there "
                 "what the new param lacks",
                 "rounding", "a compensation exactly with rounding kahan"});
  return all;
}

template <typename Update>
std::vector<StateInfo> StoredThere(const Update& update, UpdateRounding rounding) {
  std::vector<StateInfo> there = StatesThere(update);
  if (rounding == UpdateRounding::kKahan) there.push_back(AllStored(update).back());
  return there;
}

std::string ValueText(const ir::AttrValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  return Concat(std::get<double>(value));
}

// What a param of this type is rounded by.
absl::StatusOr<UpdateRounding> CheckRounding(const InferContext& ctx, DType param) {
  HT_RETURN_IF_ERROR(CheckChoice(ctx, "rounding", {"nearest", "stochastic", "kahan"}));
  const UpdateRounding rounding = RoundingOf(ctx.attrs);
  if ((param == DType::kBF16) == (rounding != UpdateRounding::kNearest)) return rounding;
  return InvalidArgument(
      ctx.op, ": param is ", Name(param), " and rounding is ", Name(rounding),
      param == DType::kBF16
          ? "; expected stochastic or kahan, since to nearest small steps are lost"
          : "; expected nearest, or param in bf16");
}

// That the inputs have the states that are expected, by number.
absl::Status CheckStateCount(const InferContext& ctx, const std::vector<StateInfo>& all,
                             unsigned expected, int first_state) {
  const auto given = static_cast<int>(ctx.inputs.size()) - first_state;
  int always = 0, there = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    always += *all[i].hyper == '\0' ? 1 : 0;
    there += static_cast<int>(expected >> i & 1);
  }
  const auto most = static_cast<int>(all.size());
  if (given < always || given > most) {
    return InvalidArgument(ctx.op, ": got ", ctx.inputs.size(), " inputs; expected ",
                           first_state + always, most == always + 1 ? " or " : "..",
                           first_state + most);
  }
  if (given == there) return absl::OkStatus();
  // The last that is absent although it is expected, or the first that should not be there.
  const bool absent = given < there;
  size_t wrong = absent ? all.size() - 1 : 0;
  while (*all[wrong].hyper == '\0' || ((expected >> wrong & 1) != 0) != absent) {
    wrong += absent ? -1 : 1;
  }
  const StateInfo& state = all[wrong];
  return InvalidArgument(ctx.op, ": ", state.hyper, " is ", ValueText(*ctx.attrs.Find(state.hyper)),
                         " and ", state.port, " is ", absent ? "absent" : "given", "; expected ",
                         state.expected);
}

absl::Status CheckScalars(const InferContext& ctx) {
  const Shape scalar;
  int port = UpdatePort::kLr;
  for (const char* name : {"lr", "inv_scale", "clip"}) {
    HT_RETURN_IF_ERROR(CheckType(ctx, port++, name, DType::kF32, scalar, "one number"));
  }
  HT_RETURN_IF_ERROR(CheckType(ctx, UpdatePort::kApply, "apply", DType::kBool, scalar, "one flag"));
  return CheckType(ctx, UpdatePort::kStep, "step", DType::kI64, scalar, "one number");
}

// The parameter and the states that are there, all of one type.
template <typename Update>
Types InferOutputs(const InferContext& ctx, const Update& update, int first_state) {
  const ir::ValueType& param = ctx.inputs[UpdatePort::kParam];
  HT_ASSIGN_OR_RETURN(const UpdateRounding rounding, CheckRounding(ctx, param.dtype));
  const unsigned kept = rounding == UpdateRounding::kKahan ? 1U << StatesOf<Update>::kCount : 0;
  HT_RETURN_IF_ERROR(CheckStateCount(ctx, AllStored(update), StateSet(update) | kept, first_state));
  std::vector<ir::ValueType> outputs = {param};
  for (const StateInfo& state : StoredThere(update, rounding)) {
    HT_RETURN_IF_ERROR(
        CheckType(ctx, first_state++, state.port, param.dtype, param.shape, "type of param"));
    outputs.push_back(param);
  }
  return outputs;
}

template <typename Update>
Types InferUpdate(const InferContext& ctx) {
  const Update update = WithAttributes(Update(), ctx.attrs);
  const ir::ValueType& param = ctx.inputs[UpdatePort::kParam];
  HT_RETURN_IF_ERROR(CheckHypers(HyperOwner::kUpdate, ctx.op, update));
  const DType low = ctx.attrs.GetDType("low");
  if (!IsLow(low) && low != DType::kF32) {
    return InvalidArgument(ctx.op, ": low is ", Name(low), "; expected f16, bf16 or f32");
  }
  HT_RETURN_IF_ERROR(
      CheckType(ctx, UpdatePort::kGrad, "grad", param.dtype, param.shape, "type of param"));
  HT_RETURN_IF_ERROR(CheckScalars(ctx));
  return InferOutputs(ctx, update, UpdatePort::kFirstState);
}

template <typename Update>
Types InferRowUpdate(const InferContext& ctx) {
  const Update update = WithAttributes(Update(), ctx.attrs);
  const ir::ValueType& param = ctx.inputs[UpdatePort::kParam];
  HT_RETURN_IF_ERROR(CheckHypers(HyperOwner::kUpdate, ctx.op, update));
  HT_RETURN_IF_ERROR(CheckRank(ctx, UpdatePort::kParam, "param", 2, 2));
  HT_RETURN_IF_ERROR(CheckRank(ctx, RowUpdatePort::kIds, "ids", 1, 1));
  const Shape rows = {ctx.inputs[RowUpdatePort::kIds].shape[0], param.shape[1]};
  HT_RETURN_IF_ERROR(CheckType(ctx, UpdatePort::kGrad, "grad", param.dtype, rows,
                               "a row of param for each of ids"));
  HT_RETURN_IF_ERROR(CheckScalars(ctx));
  return InferOutputs(ctx, update, RowUpdatePort::kFirstState);
}

template <typename Update>
std::vector<ir::AttrSpec> RowUpdateAttrs(const Update& defaults) {
  std::vector<ir::AttrSpec> attrs;
  HypersOf<Update>::ForEach(defaults, [&attrs](const HyperInfo& info, const auto& value) {
    attrs.push_back(Optional(info.name, value, info.doc));
  });
  attrs.push_back(
      Optional("rounding", std::string(Name(UpdateRounding::kNearest)),
               "of results computed in f32: of bf16 stochastic (up with the share of the "
               "distance that lies below) or kahan (param to nearest, states "
               "stochastic), of f64 and f32 nearest"));
  attrs.push_back(Optional("seed", int64_t{0},
                           "key of the random bits of stochastic rounding, which follow from it, "
                           "step, the number of the result and that of the element"));
  return attrs;
}

template <typename Update>
std::vector<ir::AttrSpec> UpdateAttrs(const Update& defaults) {
  std::vector<ir::AttrSpec> attrs = RowUpdateAttrs(defaults);
  attrs.push_back(Optional("low", DType::kF32,
                           "set by keep-low-weights: f16 or bf16, in which new_param is written "
                           "over the kept cast of param as well; f32: no such copy"));
  attrs.push_back(Optional("group", int64_t{0},
                           "set by group-updates: neighbours of one number run in one launch; 0: "
                           "alone"));
  return attrs;
}

template <typename Update>
ir::OpRecord UpdateRecord(const Update& defaults) {
  const UpdateInfo& info = kUpdateInfo<Update>;
  ir::OpRecord r;
  r.name = info.op;
  r.doc = info.doc;
  r.no_gradient = kIsUpdate;
  r.source = info.source;
  r.inputs = {{"param", kStoredDTypes, "any shape"},
              {"grad", kStoredDTypes, "as param, still multiplied by the loss scale"},
              {"lr", {DType::kF32}, "[] learning rate"},
              {"inv_scale", {DType::kF32}, "[] 1 / loss scale"},
              {"clip", {DType::kF32}, "[] factor of global-norm clipping"},
              {"apply", {DType::kBool}, "[] false: every output is its input, bit for bit"},
              {"step", {DType::kI64}, "[] number of this step among the applied ones, from 1"}};
  r.outputs = {{"new_param", "as param"}};
  r.in_place = {{UpdatePort::kParam, 0}};
  std::string name, doc;
  for (const StateInfo& state : AllStored(defaults)) {
    const auto index = static_cast<int>(r.outputs.size());
    r.in_place.push_back({UpdatePort::kFirstState + index - 1, index});
    r.outputs.push_back(
        {Concat("new_", state.port),
         *state.hyper == '\0' ? "as param" : Concat("as param; present if ", state.port, " is")});
    if (*state.hyper == '\0') {
      r.inputs.push_back({state.port, kStoredDTypes, state.doc});
      continue;
    }
    // One variadic input for all that may be absent, since an output is absent with it.
    name += Concat(name.empty() ? "" : "_or_", state.port);
    doc += Concat(doc.empty() ? "" : "; ", state.doc);
  }
  r.inputs.push_back({name, kStoredDTypes, doc, /*optional=*/true, /*variadic=*/true});
  r.attrs = UpdateAttrs(defaults);
  r.infer = InferUpdate<Update>;
  r.amp = Deny("updates compute in f32 and round what they store by themselves");
  r.fusion = ir::FusionClass::kElementwise;
  r.cost = FlopsPerInput(info.flops);
  return r;
}

// Reads and writes the rows alone.
ir::Cost RowUpdateCost(const ir::Node& node, double flops) {
  const ir::ValueType& grad = node.input_type(UpdatePort::kGrad);
  const auto elements = static_cast<double>(grad.num_elements());
  const double tables = 2.0 * node.num_outputs();  // each is read and written
  const double ids = static_cast<double>(node.input_type(RowUpdatePort::kIds).num_bytes());
  return {flops * elements, (tables + 1) * static_cast<double>(grad.num_bytes()) + ids};
}

template <typename Update>
ir::OpRecord RowUpdateRecord(const Update& defaults) {
  const UpdateInfo& info = kUpdateInfo<Update>;
  ir::OpRecord r = UpdateRecord(defaults);
  r.name = RowUpdateOp<Update>();
  r.doc = Concat(info.op,
                 " of the rows ids[i] of param [V, D] and its states, with row i of grad "
                 "[N, D] as their gradient; other rows keep every bit, and an id out of 0..V-1 "
                 "changes nothing. ids [N] are distinct, those out of range aside.");
  r.inputs[UpdatePort::kParam].doc = "[V, D]";
  r.inputs[UpdatePort::kGrad].doc = "[N, D], still multiplied by the loss scale";
  r.inputs.insert(r.inputs.begin() + RowUpdatePort::kIds, {"ids", {DType::kI64}, "[N]"});
  for (ir::InPlacePair& pair : r.in_place) {
    if (pair.input >= RowUpdatePort::kIds) ++pair.input;
  }
  r.attrs = RowUpdateAttrs(defaults);
  r.infer = InferRowUpdate<Update>;
  r.fusion = ir::FusionClass::kOpaque;
  r.cost = [](const ir::Node& node) { return RowUpdateCost(node, kUpdateInfo<Update>.flops); };
  return r;
}

}  // namespace

void Register_optimizer_updates(ir::OpRegistry& registry) {
  ForEachUpdate([&registry]<typename Update>(const Update& defaults) {
    AddOp(registry, UpdateRecord(defaults));
    if constexpr (kIsRowWise<Update>) AddOp(registry, RowUpdateRecord(defaults));
  });
}

}  // namespace halftone::ops
