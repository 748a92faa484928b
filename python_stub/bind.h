// The parts of the module, bound in this order (a class must be known before a signature names it).
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/parameter.h"
#include "halftone/graph/nn/value.h"

namespace halftone::python {

namespace py = pybind11;

void BindValues(py::module_& nn);          // Value, Parameter
void BindFunctions(py::module_& nn);       // exp, softmax, conv2d, ...
void BindModules(py::module_& nn);         // Module, ModuleScope
void BindContainers(py::module_& nn);      // Sequential, ModuleList, ModuleDict
void BindLayers(py::module_& nn);          // Linear, Conv2d, ...
void BindOptimizers(py::module_& optim);   // optimizers, schedules
void BindAmp(py::module_& amp);            // Policy, GradScaler
void BindHandles(py::module_& nn);         // what add_optimizer and set_grad_scaler give
void BindConfig(py::module_& nn);          // GraphConfig
void BindGraph(py::module_& nn);           // Graph
void BindRunLog(py::module_& nn);          // RunLog
void BindDistributed(py::module_ module);  // init, rank, size, Sampler
void BindGraphFile(py::module_& module);   // GraphFile, checkpoint files

// An operand: a Value, a Parameter or a number. Errors: TypeError.
nn::Located ToOperand(py::handle object);
bool IsOperand(py::handle object);

// A tied parameter once, in the order of the names.
std::vector<nn::Parameter> Distinct(
    const std::vector<std::pair<std::string, nn::Parameter>>& named);

// A handle of its own, which stays with its tensor when another handle is assigned to.
nn::Parameter OwnHandle(const nn::Parameter& parameter);
// Ties the one of `named` that is called `name` to `parameter`; false if there is none.
bool Retie(const std::vector<std::pair<std::string, nn::Parameter>>& named, const std::string& name,
           const nn::Parameter& parameter);
// Adds `child` to `parent`; the caller keeps it alive. Errors: ValueError; inside build(),
// RuntimeError.
void RegisterModule(nn::Module& parent, const std::string& name, py::handle child);

// "cpu", "reference", "cuda:0". Errors: ValueError.
Device ToDevice(const std::string& name);

}  // namespace halftone::python
