#include "halftone/kernels/cuda/cudnn/knob_search.h"

#include <algorithm>
#include <bit>

namespace halftone::cuda {
namespace {

constexpr int64_t kFirstCounts[] = {4, 16, 64};
constexpr size_t kNamesAtOnce = 4;
constexpr int64_t kNamesAtMost = 256;

bool Counts(const CudnnKnob& knob) { return knob.minimum >= 1; }

bool OnlyCutsSums(const CudnnKnob& knob) {
  switch (knob.type) {
    case CUDNN_KNOB_TYPE_TILE_SIZE:
    case CUDNN_KNOB_TYPE_TILEK:
    case CUDNN_KNOB_TYPE_STAGES:
    case CUDNN_KNOB_TYPE_SPLIT_K_SLC:
    case CUDNN_KNOB_TYPE_KERNEL_CFG:
    case CUDNN_KNOB_TYPE_TILE_CGA_M:
    case CUDNN_KNOB_TYPE_TILE_CGA_N:
      return true;
    default:
      return false;
  }
}

// 0, the half, the quarters, the eighths ... of [0, count): each once.
std::vector<int64_t> SpreadOrder(int64_t count) {
  std::vector<int64_t> order = {0};
  for (auto step = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count))); step > 1;
       step /= 2) {
    for (int64_t i = step / 2; i < count; i += step) order.push_back(i);
  }
  return order;
}

// Null if the choice leaves it to the engine.
const int64_t* ValueOf(const CudnnChoice& choice, const CudnnKnob& knob) {
  for (const auto& [type, value] : choice.knobs) {
    if (type == knob.type) return &value;
  }
  return nullptr;
}

CudnnChoice With(CudnnChoice choice, const CudnnKnob& knob, int64_t value) {
  for (auto& [type, old] : choice.knobs) {
    if (type != knob.type) continue;
    old = value;
    return choice;
  }
  choice.knobs.emplace_back(knob.type, value);
  return choice;
}

}  // namespace

absl::StatusOr<std::vector<CudnnKnob>> CudnnKnobs(const CudnnPlan& plan) {
  HT_ASSIGN_OR_RETURN(const CudnnDescriptor engine,
                      plan.config.GetDescriptor(CUDNN_ATTR_ENGINECFG_ENGINE,
                                                CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine"));
  HT_ASSIGN_OR_RETURN(const std::vector<CudnnDescriptor> infos,
                      engine.GetDescriptors(CUDNN_ATTR_ENGINE_KNOB_INFO,
                                            CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, "knob"));
  std::vector<CudnnKnob> knobs;
  for (const CudnnDescriptor& info : infos) {
    HT_ASSIGN_OR_RETURN(const auto type, info.Get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_INFO_TYPE,
                                                                          CUDNN_TYPE_KNOB_TYPE));
    if (type.size() != 1) return Internal("a knob of ", type.size(), " types");
    CudnnKnob& knob = knobs.emplace_back();
    knob.type = type[0];
    HT_ASSIGN_OR_RETURN(knob.minimum, info.GetInt(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE));
    HT_ASSIGN_OR_RETURN(knob.maximum, info.GetInt(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE));
    HT_ASSIGN_OR_RETURN(const int64_t stride, info.GetInt(CUDNN_ATTR_KNOB_INFO_STRIDE));
    knob.stride = std::max<int64_t>(stride, 1);
  }
  return knobs;
}

CudnnKnobSearch::CudnnKnobSearch(const CudnnPlan& start, const CudnnTarget& target, size_t budget,
                                 double seconds)
    : graph_(start.graph),
      target_(target),
      budget_(budget),
      deadline_(std::chrono::steady_clock::now() +
                std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds))),
      last_best_(start.choice) {
  absl::StatusOr<std::vector<CudnnKnob>> knobs = CudnnKnobs(start);
  if (!knobs.ok()) return;  // there is nothing to search
  for (const CudnnKnob& knob : *knobs) {
    if (OnlyCutsSums(knob) && knob.maximum > knob.minimum) knobs_.push_back(knob);
  }
  std::stable_partition(knobs_.begin(), knobs_.end(), Counts);
}

std::vector<CudnnPlan> CudnnKnobSearch::Next(const CudnnChoice& best) {
  const bool better = best != last_best_;
  last_best_ = best;
  while (knob_ < knobs_.size() && budget_ > 0) {
    const CudnnKnob& knob = knobs_[knob_];
    std::vector<CudnnPlan> plans =
        Counts(knob) ? NextCounts(best, knob) : NextNames(best, knob, better);
    ++round_;
    if (!plans.empty()) return plans;
    if (Counts(knob) && round_ == 1) continue;  // small ranges have none of the first values
    ++knob_;
    round_ = 0;
    names_ = 0;
  }
  return {};
}

void CudnnKnobSearch::Build(const CudnnChoice& best, const CudnnKnob& knob, int64_t value,
                            std::vector<CudnnPlan>& plans) {
  const int64_t* const now = ValueOf(best, knob);
  if (std::chrono::steady_clock::now() > deadline_) budget_ = 0;
  if (budget_ == 0 || value > knob.maximum || (now != nullptr && *now == value)) return;
  absl::StatusOr<CudnnDescriptor> config =
      ConfigureCudnnEngine(*graph_, target_, With(best, knob, value));
  if (!config.ok()) return;
  --budget_;
  absl::StatusOr<CudnnPlan> plan = BuildCudnnPlan(graph_, target_, *std::move(config));
  if (plan.ok()) plans.push_back(*std::move(plan));
}

std::vector<CudnnPlan> CudnnKnobSearch::NextCounts(const CudnnChoice& best, const CudnnKnob& knob) {
  std::vector<CudnnPlan> plans;
  const auto build = [&](int64_t count) {
    Build(best, knob, count - (count - knob.minimum) % knob.stride, plans);
  };
  if (round_ == 0) {
    for (const int64_t times : kFirstCounts) build(times * knob.minimum);
  } else if (round_ == 1) {
    const int64_t* const now = ValueOf(best, knob);
    const int64_t count = now == nullptr ? knob.minimum : *now;
    build(2 * count);
    if (count / 2 > knob.minimum) build(count / 2);
  }
  return plans;
}

std::vector<CudnnPlan> CudnnKnobSearch::NextNames(const CudnnChoice& best, const CudnnKnob& knob,
                                                  bool better) {
  std::vector<CudnnPlan> plans;
  if (round_ > 0 && !better) return plans;
  const int64_t count = (knob.maximum - knob.minimum) / knob.stride + 1;
  const std::vector<int64_t> order = SpreadOrder(std::min(count, kNamesAtMost));
  while (names_ < order.size() && plans.size() < kNamesAtOnce) {
    Build(best, knob, knob.minimum + order[names_++] * knob.stride, plans);
  }
  return plans;
}

}  // namespace halftone::cuda
