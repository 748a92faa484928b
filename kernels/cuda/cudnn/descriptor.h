// Errors of cuDNN as statuses, and the descriptors of its graph API as objects that destroy
// themselves. Source: cudnn_graph.h of cuDNN 9 and NVIDIA's "Graph API" reference,
// https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html
#pragma once

#include <cudnn_graph.h>

#include <string>
#include <utility>
#include <vector>

#include "halftone/core/status.h"

namespace halftone::cuda {

// OK, or call, status name and the library's own explanation: "cudnnBackendFinalize of tensor y:
// CUDNN_STATUS_BAD_PARAM (strides ...)". Unimplemented where the library says that it has no such
// thing, ResourceExhausted where memory ran out, Internal otherwise.
absl::Status ToStatus(cudnnStatus_t status, const std::string& call);

// One cudnnBackendDescriptor_t. Calls are chained; the first that fails is kept, later ones do
// nothing, and Finalize reports it. `what` names the descriptor in messages.
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  CudnnDescriptor(cudnnBackendDescriptorType_t type, std::string what);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept { *this = std::move(other); }
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept;

  // Null before creation. Belongs to this object.
  cudnnBackendDescriptor_t get() const { return descriptor_; }
  const absl::Status& status() const { return status_; }

  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t count, const void* values);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, int64_t value) {
    return Set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    return Set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, float value) {
    return Set(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, bool value) {
    return Set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return Set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  // Empty: not set.
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, const std::vector<CudnnDescriptor>& value);
  // The first error of any call on this object, this one last.
  absl::Status Finalize();

  // All values of an attribute.
  template <typename T>
  absl::StatusOr<std::vector<T>> Get(cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type) const {
    HT_ASSIGN_OR_RETURN(const int64_t count, GetInto(name, type, 0, nullptr));
    std::vector<T> values(count);
    HT_ASSIGN_OR_RETURN(const int64_t got, GetInto(name, type, count, values.data()));
    values.resize(got);
    return values;
  }
  absl::StatusOr<int64_t> GetInt(cudnnBackendAttributeName_t name) const;
  // A descriptor, or descriptors, of type `type` that the library makes.
  absl::StatusOr<CudnnDescriptor> GetDescriptor(cudnnBackendAttributeName_t name,
                                                cudnnBackendDescriptorType_t type,
                                                const std::string& what) const;
  // `at_most`: how many to make room for; 0 asks the library how many there are, which of knob
  // choices says 0 however many there are.
  absl::StatusOr<std::vector<CudnnDescriptor>> GetDescriptors(cudnnBackendAttributeName_t name,
                                                              cudnnBackendDescriptorType_t type,
                                                              const std::string& what,
                                                              int64_t at_most = 0) const;

 private:
  void Keep(cudnnStatus_t status, const char* call, const std::string& detail);
  // How many values there are; up to `count` of them go to `values`.
  absl::StatusOr<int64_t> GetInto(cudnnBackendAttributeName_t name,
                                  cudnnBackendAttributeType_t type, int64_t count,
                                  void* values) const;

  cudnnBackendDescriptor_t descriptor_ = nullptr;
  std::string what_;
  absl::Status status_;
};

}  // namespace halftone::cuda

// Returns the status of the function around it when a cuDNN call fails.
#define HT_CUDNN_RETURN_IF_ERROR(call)                                                   \
  do {                                                                                   \
    if (const cudnnStatus_t ht_cudnn = (call); ht_cudnn != CUDNN_STATUS_SUCCESS) {       \
      const std::string ht_text(#call);                                                  \
      return ::halftone::cuda::ToStatus(ht_cudnn, ht_text.substr(0, ht_text.find('('))); \
    }                                                                                    \
  } while (false)
