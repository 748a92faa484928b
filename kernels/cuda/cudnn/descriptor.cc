#include "halftone/kernels/cuda/cudnn/descriptor.h"

#include <algorithm>
#include <array>

namespace halftone::cuda {

absl::Status ToStatus(cudnnStatus_t status, const std::string& call) {
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  std::array<char, 1024> detail{};
  cudnnGetLastErrorString(detail.data(), detail.size() - 1);
  std::string message = Concat(call, ": ", cudnnGetErrorString(status));
  if (detail[0] != '\0') message += Concat(" (", detail.data(), ")");
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return Unimplemented(message);
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return ResourceExhausted(message);
  }
  return Internal(message);
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type, std::string what)
    : what_(std::move(what)) {
  Keep(cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor", "");
}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
}

CudnnDescriptor& CudnnDescriptor::operator=(CudnnDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(what_, other.what_);
  std::swap(status_, other.status_);
  return *this;
}

void CudnnDescriptor::Keep(cudnnStatus_t status, const char* call, const std::string& detail) {
  if (status_.ok()) status_ = ToStatus(status, Concat(call, " of ", what_, detail));
}

CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name,
                                      cudnnBackendAttributeType_t type, int64_t count,
                                      const void* values) {
  if (!status_.ok()) return *this;
  Keep(cudnnBackendSetAttribute(descriptor_, name, type, count, values), "cudnnBackendSetAttribute",
       Concat(", attribute ", static_cast<int>(name)));
  return *this;
}

CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name,
                                      const CudnnDescriptor& value) {
  if (status_.ok()) status_ = value.status_;
  cudnnBackendDescriptor_t raw = value.get();
  return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, static_cast<const void*>(&raw));
}

CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name,
                                      const std::vector<CudnnDescriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor& value : values) {
    if (status_.ok()) status_ = value.status_;
    raw.push_back(value.get());
  }
  if (raw.empty()) return *this;
  return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()),
             static_cast<const void*>(raw.data()));
}

absl::Status CudnnDescriptor::Finalize() {
  if (status_.ok()) Keep(cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize", "");
  return status_;
}

absl::StatusOr<int64_t> CudnnDescriptor::GetInto(cudnnBackendAttributeName_t name,
                                                 cudnnBackendAttributeType_t type, int64_t count,
                                                 void* values) const {
  HT_RETURN_IF_ERROR(status_);
  int64_t got = 0;
  HT_RETURN_IF_ERROR(ToStatus(
      cudnnBackendGetAttribute(descriptor_, name, type, count, &got, values),
      Concat("cudnnBackendGetAttribute of ", what_, ", attribute ", static_cast<int>(name))));
  return count > 0 ? std::min(got, count) : got;
}

absl::StatusOr<int64_t> CudnnDescriptor::GetInt(cudnnBackendAttributeName_t name) const {
  int64_t value = 0;
  HT_RETURN_IF_ERROR(GetInto(name, CUDNN_TYPE_INT64, 1, &value).status());
  return value;
}

absl::StatusOr<CudnnDescriptor> CudnnDescriptor::GetDescriptor(cudnnBackendAttributeName_t name,
                                                               cudnnBackendDescriptorType_t type,
                                                               const std::string& what) const {
  CudnnDescriptor result(type, what);
  HT_RETURN_IF_ERROR(result.status_);
  cudnnBackendDescriptor_t raw = result.get();
  HT_RETURN_IF_ERROR(
      GetInto(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, static_cast<void*>(&raw)).status());
  return result;
}

absl::StatusOr<std::vector<CudnnDescriptor>> CudnnDescriptor::GetDescriptors(
    cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type, const std::string& what,
    int64_t at_most) const {
  int64_t count = at_most;
  if (count == 0) {
    HT_ASSIGN_OR_RETURN(count, GetInto(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr));
  }
  std::vector<CudnnDescriptor> results;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    results.emplace_back(type, Concat(what, " ", i));
    HT_RETURN_IF_ERROR(results.back().status_);
    raw.push_back(results.back().get());
  }
  if (count == 0) return results;
  HT_ASSIGN_OR_RETURN(const int64_t got, GetInto(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                                 static_cast<void*>(raw.data())));
  results.resize(got);
  return results;
}

}  // namespace halftone::cuda
