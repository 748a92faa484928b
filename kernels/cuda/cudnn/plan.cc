#include "halftone/kernels/cuda/cudnn/plan.h"

#include <algorithm>
#include <charconv>

namespace halftone::cuda {
namespace {

absl::StatusOr<CudnnChoice> ChoiceOf(const CudnnDescriptor& config, const CudnnDescriptor& engine) {
  CudnnChoice choice;
  HT_ASSIGN_OR_RETURN(choice.engine, engine.GetInt(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  HT_ASSIGN_OR_RETURN(
      const std::vector<CudnnDescriptor> knobs,
      config.GetDescriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                            "knob choice", CUDNN_KNOB_TYPE_COUNTS));
  for (const CudnnDescriptor& knob : knobs) {
    HT_ASSIGN_OR_RETURN(
        const std::vector<cudnnBackendKnobType_t> type,
        knob.Get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE));
    HT_ASSIGN_OR_RETURN(const int64_t value, knob.GetInt(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
    if (type.size() != 1) return Internal("a knob choice of ", type.size(), " types");
    choice.knobs.emplace_back(type[0], value);
  }
  return choice;
}

absl::StatusOr<CudnnDescriptor> EngineOf(const CudnnDescriptor& config) {
  return config.GetDescriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR,
                              "engine");
}

absl::StatusOr<std::vector<CudnnDescriptor>> Heuristic(const CudnnGraph& graph,
                                                       const CudnnTarget& target,
                                                       cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic");
  heuristic.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph())
      .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.device != nullptr) heuristic.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device);
  HT_RETURN_IF_ERROR(heuristic.Finalize());
  return heuristic.GetDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                  "engine configuration");
}

// Whether `plans` has the same already, or as many of its engine as there may be. Said before
// anything is built.
bool IsNeedless(const CudnnDescriptor& config, const std::vector<CudnnPlan>& plans) {
  const absl::StatusOr<CudnnDescriptor> engine = EngineOf(config);
  if (!engine.ok()) return false;  // BuildCudnnPlan says why
  const absl::StatusOr<CudnnChoice> choice = ChoiceOf(config, *engine);
  if (!choice.ok()) return false;
  size_t of_engine = 0;
  for (const CudnnPlan& plan : plans) {
    if (plan.choice == *choice) return true;
    if (plan.choice.engine == choice->engine) ++of_engine;
  }
  return of_engine >= kCudnnPlansOfAnEngine;
}

// A whole number at the front of `text`, taken off it.
bool TakeNumber(std::string_view& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(end - text.data());
  return true;
}

bool TakeChar(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

absl::Status CheckNumericalNotes(const std::vector<cudnnBackendNumericalNote_t>& notes,
                                 const CudnnPromises& promises) {
  for (const cudnnBackendNumericalNote_t note : notes) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        if (promises.deterministic) return Unimplemented("not deterministic");
        break;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return Unimplemented("narrows its inputs");
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        return Unimplemented("sums in less than f32");
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        if (!promises.low && !promises.tf32_is_exact && !promises.allow_tf32) {
          return Unimplemented("f32 on tensor cores is TF32");
        }
        break;
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        if (promises.low || promises.tf32_is_exact) return Unimplemented("transforms in 16 bit");
        break;
      default:
        break;
    }
  }
  return absl::OkStatus();
}

std::string CudnnChoice::ToString() const {
  std::string text = Concat(engine);
  for (const auto& [type, value] : knobs) text += Concat(" ", type, "=", value);
  return text;
}

absl::StatusOr<CudnnChoice> CudnnChoice::Parse(const std::string& text) {
  CudnnChoice choice;
  std::string_view rest = text;
  bool ok = text.size() < 4096 && TakeNumber(rest, choice.engine) && choice.engine >= 0;
  while (ok && !rest.empty()) {
    std::pair<int64_t, int64_t> knob;
    ok = TakeChar(rest, ' ') && TakeNumber(rest, knob.first) && TakeChar(rest, '=') &&
         TakeNumber(rest, knob.second) && knob.first >= 0 && knob.first < CUDNN_KNOB_TYPE_COUNTS;
    choice.knobs.push_back(knob);
  }
  if (!ok)
    return InvalidArgument("no choice of a cuDNN engine; expected \"engine knob=value ...\"");
  return choice;
}

absl::StatusOr<std::vector<CudnnPlan>> FindCudnnPlans(
    const std::shared_ptr<const CudnnGraph>& graph, const CudnnTarget& target, size_t limit) {
  std::vector<CudnnPlan> plans;
  std::string reasons;
  const auto refuse = [&reasons](const std::string& who, const absl::Status& why) {
    constexpr size_t kEnough = 600;
    if (reasons.size() < kEnough) reasons += Concat("; ", who, ": ", Message(why));
  };
  for (const auto& [mode, name] :
       {std::pair(CUDNN_HEUR_MODE_A, "mode A"), std::pair(CUDNN_HEUR_MODE_FALLBACK, "fallback")}) {
    absl::StatusOr<std::vector<CudnnDescriptor>> configs = Heuristic(*graph, target, mode);
    if (!configs.ok()) {
      refuse(name, configs.status());
      continue;
    }
    for (CudnnDescriptor& config : *configs) {
      if (plans.size() == limit) return plans;
      if (IsNeedless(config, plans)) continue;
      absl::StatusOr<CudnnPlan> plan = BuildCudnnPlan(graph, target, std::move(config));
      if (!plan.ok()) {
        refuse(name, plan.status());
        continue;
      }
      plans.push_back(*std::move(plan));
    }
  }
  if (plans.empty()) return Unimplemented("cuDNN has no engine for these operands", reasons);
  return plans;
}

absl::StatusOr<std::vector<CudnnPlan>> TryCudnnEngines(
    const std::shared_ptr<const CudnnGraph>& graph, const CudnnTarget& target, size_t limit) {
  HT_ASSIGN_OR_RETURN(const int64_t count,
                      graph->graph().GetInt(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT));
  std::vector<CudnnPlan> plans;
  for (int64_t engine = 0; engine < count && plans.size() < limit; ++engine) {
    absl::StatusOr<CudnnPlan> plan = RebuildCudnnPlan(graph, target, {engine, {}});
    if (plan.ok()) plans.push_back(*std::move(plan));
  }
  if (plans.empty()) return Unimplemented("cuDNN has no engine for these operands");
  return plans;
}

absl::StatusOr<CudnnDescriptor> ConfigureCudnnEngine(const CudnnGraph& graph,
                                                     const CudnnTarget& target,
                                                     const CudnnChoice& choice) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  engine.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.graph())
      .Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine);
  if (target.device != nullptr) engine.Set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target.device);
  HT_RETURN_IF_ERROR(engine.Finalize());
  std::vector<CudnnDescriptor> knobs;
  for (const auto& [type, value] : choice.knobs) {
    CudnnDescriptor knob(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "knob choice");
    const auto knob_type = static_cast<cudnnBackendKnobType_t>(type);
    knob.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob_type)
        .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    HT_RETURN_IF_ERROR(knob.Finalize());
    knobs.push_back(std::move(knob));
  }
  CudnnDescriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
  config.Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine).Set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knobs);
  HT_RETURN_IF_ERROR(config.Finalize());
  return config;
}

absl::StatusOr<CudnnPlan> BuildCudnnPlan(const std::shared_ptr<const CudnnGraph>& graph,
                                         const CudnnTarget& target, CudnnDescriptor config) {
  HT_ASSIGN_OR_RETURN(const CudnnDescriptor engine, EngineOf(config));
  HT_ASSIGN_OR_RETURN(const std::vector<cudnnBackendNumericalNote_t> notes,
                      engine.Get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                              CUDNN_TYPE_NUMERICAL_NOTE));
  HT_RETURN_IF_ERROR(CheckNumericalNotes(notes, graph->promises()));
  CudnnPlan result;
  result.graph = graph;
  HT_ASSIGN_OR_RETURN(result.choice, ChoiceOf(config, engine));
  result.plan = CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                                Concat("plan of engine ", result.choice.ToString()));
  if (target.device != nullptr) {
    result.plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device);
  } else {
    result.plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  }
  result.plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  HT_RETURN_IF_ERROR(result.plan.Finalize());
  HT_ASSIGN_OR_RETURN(result.workspace_bytes,
                      result.plan.GetInt(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  if (result.workspace_bytes > kCudnnWorkspaceLimit) {
    return Unimplemented("needs a workspace of ", result.workspace_bytes, " bytes, limit ",
                         kCudnnWorkspaceLimit);
  }
  result.config = std::move(config);
  return result;
}

absl::StatusOr<CudnnPlan> RebuildCudnnPlan(const std::shared_ptr<const CudnnGraph>& graph,
                                           const CudnnTarget& target, const CudnnChoice& choice) {
  HT_ASSIGN_OR_RETURN(CudnnDescriptor config, ConfigureCudnnEngine(*graph, target, choice));
  return BuildCudnnPlan(graph, target, std::move(config));
}

}  // namespace halftone::cuda
