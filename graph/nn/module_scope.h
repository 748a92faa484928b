// ModuleScope: what makes a function of a module part of the module.
#pragma once

#include "halftone/graph/nn/value.h"

namespace halftone::nn {

class Module;

// While one lives, ops belong to `module`: they carry its path, obey its wish for precision and its
// mode. forward() has one open already; a function of another name opens its own. Modules called
// meanwhile belong to themselves. Does nothing outside build().
//
// Example:
//   nn::Value Attention::Attend(const nn::Value& q, const nn::Value& k, const nn::Value& v) {
//     const nn::ModuleScope scope(*this);
//     return out_(nn::matmul(nn::softmax(nn::matmul(q, k), -1), v));
//   }
class ModuleScope {
 public:
  // `loc` is the line that errors inside modules of Halftone name, where nobody else gives one.
  // Errors (of the trace): the module is not part of the graph.
  explicit ModuleScope(const Module& module, Loc loc = Loc::current());
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  internal::Trace* trace_;
};

}  // namespace halftone::nn
