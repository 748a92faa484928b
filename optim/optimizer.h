// Optimizer: which parameters follow which update rule, with which hyper-parameters. A description:
// it holds no tensors and runs nothing. nn::Graph turns it into an `optimizer` marker, passes turn
// the marker into update nodes, and the state lives in graph variables.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "halftone/graph/ir/attribute.h"
#include "halftone/optim/lr_schedule.h"
#include "halftone/optim/parameter_ref.h"

namespace halftone::optim {

// Whose non-finite gradients make this optimizer skip a step under a grad scaler.
enum class SkipPolicy : uint8_t {
  kOwn,  // its own (PyTorch's behaviour)
  kAny   // those of any optimizer of the graph
};
const char* Name(SkipPolicy policy);  // "own", "any"

// What all rules share. Each option struct repeats these after its own fields.
struct StepOptions {
  LRSchedule lr_schedule;  // constant by default
  double clip_norm = 0;    // global L2 norm after unscaling; 0 does not clip
  std::string scaler;      // name of the grad scaler; empty: the graph's, if it has one
  SkipPolicy skip = SkipPolicy::kOwn;
};

class Optimizer {
 public:
  // "sgd", "adam", "adamw".
  const std::string& rule() const { return rule_; }
  const ParameterList& parameters() const { return parameters_; }
  // Puts what `now` gives for each parameter in its place, each once: where parameters were tied
  // there is one for several, where a tie was undone several for one.
  void ReplaceParameters(const std::function<ParameterList(const ParameterRef&)>& now);
  double lr() const { return hyper_.GetFloat("lr"); }
  // Hyper-parameters under the names of the optimizer marker.
  const ir::Attributes& hyper_parameters() const { return hyper_; }
  const StepOptions& step_options() const { return step_; }
  StepOptions& mutable_step_options() { return step_; }

  // Errors: InvalidArgument naming rule, option, value and range: "SGD: lr = -1; expected a finite
  // number >= 0"; no parameter, a null or a repeated one.
  absl::Status Validate() const;

  // The attributes of the `optimizer` marker. `names` are the graph's names of parameters().
  // Requires: one name per parameter.
  ir::Attributes ToMarker(const std::string& name, const std::vector<std::string>& names) const;

 protected:
  Optimizer(std::string rule, ParameterList parameters, ir::Attributes hyper, StepOptions step)
      : rule_(std::move(rule)),
        parameters_(std::move(parameters)),
        hyper_(std::move(hyper)),
        step_(std::move(step)) {}

 private:
  std::string rule_;
  ParameterList parameters_;
  ir::Attributes hyper_;
  StepOptions step_;
};

struct SGDOptions {
  double lr = 1e-3;         // base learning rate, >= 0
  double momentum = 0;      // >= 0; 0 keeps no buffer
  double dampening = 0;     // part of the gradient left out of the momentum buffer
  double weight_decay = 0;  // L2: added to the gradient, >= 0
  bool nesterov = false;    // needs momentum > 0 and dampening == 0
  LRSchedule lr_schedule = {};
  double clip_norm = 0;
  std::string scaler = {};
  SkipPolicy skip = SkipPolicy::kOwn;
};

// Stochastic gradient descent. Source: torch.optim.SGD: buf = momentum * buf + (1 - dampening) * g
// with buf = g in the first step; w -= lr * buf.
class SGD : public Optimizer {
 public:
  explicit SGD(ParameterList parameters, SGDOptions options = {});
};

struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};  // each in [0, 1)
  double eps = 1e-8;                           // >= 0
  double weight_decay = 0;                     // L2: added to the gradient
  LRSchedule lr_schedule = {};
  double clip_norm = 0;
  std::string scaler = {};
  SkipPolicy skip = SkipPolicy::kOwn;
};

// Source: Kingma, Ba: "Adam", 2015, algorithm 1; order of operations as torch.optim.Adam.
class Adam : public Optimizer {
 public:
  explicit Adam(ParameterList parameters, AdamOptions options = {});
};

struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  // decoupled: w *= 1 - lr * weight_decay
  LRSchedule lr_schedule = {};
  double clip_norm = 0;
  std::string scaler = {};
  SkipPolicy skip = SkipPolicy::kOwn;
};

// Source: Loshchilov, Hutter: "Decoupled Weight Decay Regularization", 2019, algorithm 2.
class AdamW : public Optimizer {
 public:
  explicit AdamW(ParameterList parameters, AdamWOptions options = {});
};

}  // namespace halftone::optim
