// The emulated cuDNN's entry points: handles, messages, attributes.
#include <algorithm>
#include <mutex>
#include <set>

#include "halftone/tests/cuda_emulation/cudnn_descriptor.h"
#include "halftone/tests/cuda_emulation/library_work.h"

using namespace halftone::emulation;         // NOLINT(google-build-using-namespace): C entry points
using namespace halftone::emulation::cudnn;  // NOLINT(google-build-using-namespace)

namespace {

// What is behind cudnnBackendDescriptor_t.
struct Holder {
  std::shared_ptr<Descriptor> descriptor;
};

struct Live {
  std::mutex mutex;
  std::set<const void*> holders, handles;
};
Live& Objects() {
  static auto* const live = new Live;
  return *live;
}

thread_local std::string last_error;

// Null, having said so, for one that was not made or is destroyed.
Holder* Find(cudnnBackendDescriptor_t descriptor) {
  const std::scoped_lock lock(Objects().mutex);
  if (Objects().holders.count(descriptor) > 0) return static_cast<Holder*>(descriptor);
  Report("cudnn: a descriptor that was not made or is destroyed");
  return nullptr;
}

size_t BytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
      return 8;
    default:
      return 4;  // floats and enumerations
  }
}

// Alpha and beta may be doubles too.
bool Fits(const Spec& spec, cudnnBackendAttributeType_t type) {
  return spec.type == type || (spec.type == CUDNN_TYPE_FLOAT && type == CUDNN_TYPE_DOUBLE);
}

// A call that uses a handle, which NVIDIA allows to one thread at a time.
class HandleUse {
 public:
  explicit HandleUse(Handle* handle)
      : handle_(handle), alone_(handle == nullptr || handle->calls.fetch_add(1) == 0) {}
  ~HandleUse() {
    if (handle_ != nullptr) handle_->calls.fetch_sub(1);
  }
  HandleUse(const HandleUse&) = delete;
  HandleUse& operator=(const HandleUse&) = delete;
  bool alone() const { return alone_; }
  static cudnnStatus_t Refused() {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "a handle used by two threads at once");
  }

 private:
  Handle* handle_;
  bool alone_;
};

// That a descriptor is finalized with, or its graph was made with. Null: none.
Handle* HandleOf(const Descriptor& d) {
  for (const auto name : {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE}) {
    if (d.Has(name)) return FindHandle(d.Value<cudnnHandle_t>(name, nullptr));
  }
  for (const auto name :
       {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINE_OPERATION_GRAPH}) {
    if (const Descriptor* const graph = d.Reference(name)) return HandleOf(*graph);
  }
  return nullptr;
}

cudnnStatus_t SetDescriptors(Descriptor& to, cudnnBackendAttributeName_t name, int64_t count,
                             const void* values) {
  std::vector<DescriptorPtr> references;
  for (int64_t i = 0; i < count; ++i) {
    const Holder* holder = Find(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
    if (holder == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM, "no descriptor");
    if (!holder->descriptor->finalized) {
      return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                    "a descriptor that is not finalized, as attribute " + std::to_string(name));
    }
    references.push_back(holder->descriptor);
  }
  to.PutDescriptors(name, std::move(references));
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

namespace halftone::emulation::cudnn {

cudnnStatus_t Refuse(cudnnStatus_t status, const std::string& why) {
  last_error = why;
  if (CUDNN_STATUS_CATEGORY(status) != CUDNN_STATUS_NOT_SUPPORTED) Report("cudnn: " + why);
  return status;
}

Handle* FindHandle(cudnnHandle_t handle) {
  const std::scoped_lock lock(Objects().mutex);
  if (Objects().handles.count(handle) > 0) return reinterpret_cast<Handle*>(handle);
  Report("cudnn: a handle that was not made or is destroyed");
  return nullptr;
}

}  // namespace halftone::emulation::cudnn

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
#define HT_NAME(name) \
  case name:          \
    return #name
    HT_NAME(CUDNN_STATUS_SUCCESS);
    HT_NAME(CUDNN_STATUS_NOT_INITIALIZED);
    HT_NAME(CUDNN_STATUS_BAD_PARAM);
    HT_NAME(CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    HT_NAME(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
    HT_NAME(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    HT_NAME(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    HT_NAME(CUDNN_STATUS_NOT_SUPPORTED);
    HT_NAME(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    HT_NAME(CUDNN_STATUS_EXECUTION_FAILED);
#undef HT_NAME
    default:
      return "CUDNN_STATUS (one that the emulation does not give)";
  }
}

void cudnnGetLastErrorString(char* message, size_t max_size) {
  if (max_size == 0) return;
  const size_t bytes = std::min(max_size - 1, last_error.size());
  std::memcpy(message, last_error.data(), bytes);
  message[bytes] = '\0';
  last_error.clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) {
    return Refuse(CUDNN_STATUS_NOT_INITIALIZED, "no CUDA device");
  }
  auto* const made = new Handle;
  cudaGetDevice(&made->device);
  const std::scoped_lock lock(Objects().mutex);
  *handle = reinterpret_cast<cudnnHandle_t>(made);
  Objects().handles.insert(*handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  Handle* const found = FindHandle(handle);
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const std::scoped_lock lock(Objects().mutex);
  Objects().handles.erase(handle);
  delete found;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  Handle* const found = FindHandle(handle);
  if (found == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const HandleUse use(found);
  if (!use.alone()) return HandleUse::Refused();
  found->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  if (!IsKnown(type)) {
    return Refuse(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                  "descriptor type " + std::to_string(type) + " is not emulated");
  }
  auto* const holder = new Holder{std::make_shared<Descriptor>()};
  holder->descriptor->type = type;
  const std::scoped_lock lock(Objects().mutex);
  Objects().holders.insert(holder);
  *descriptor = holder;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  if (descriptor == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null descriptor");
  const Holder* const holder = Find(descriptor);
  if (holder == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const std::scoped_lock lock(Objects().mutex);
  Objects().holders.erase(descriptor);
  delete holder;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  if (descriptor == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null descriptor");
  const Holder* const holder = Find(descriptor);
  if (holder == nullptr) return CUDNN_STATUS_BAD_PARAM;
  Descriptor& d = *holder->descriptor;
  const std::string what = "attribute " + std::to_string(name) + " of descriptor type " +
                           std::to_string(static_cast<int>(d.type));
  const Spec* const spec = FindSpec(d.type, name);
  if (d.finalized) return Refuse(CUDNN_STATUS_BAD_PARAM, what + " set after finalization");
  if (spec == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM, what + " is not emulated");
  if (!spec->settable) return Refuse(CUDNN_STATUS_BAD_PARAM, what + " is read only");
  if (values == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM, what + ": null values");
  if (!Fits(*spec, type)) {
    return Refuse(spec->type == CUDNN_TYPE_FLOAT ? CUDNN_STATUS_BAD_PARAM
                                                 : CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                  what + " of type " + std::to_string(type));
  }
  if (count < 1 || count > spec->max_count) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, what + ": " + std::to_string(count) + " values");
  }
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return SetDescriptors(d, name, count, values);
  const auto* const bytes = static_cast<const char*>(values);
  d.attributes[name] = {type, count, {bytes, bytes + count * BytesOf(type)}, {}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t* count, void* values) {
  if (descriptor == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null descriptor");
  const Holder* const holder = Find(descriptor);
  if (holder == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const Descriptor& d = *holder->descriptor;
  const std::string what = "attribute " + std::to_string(name) + " of descriptor type " +
                           std::to_string(static_cast<int>(d.type));
  if (!d.finalized) return Refuse(CUDNN_STATUS_NOT_INITIALIZED, what + " read before finalization");
  const Spec* const spec = FindSpec(d.type, name);
  if (spec == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM, what + " is not emulated");
  if (!Fits(*spec, type)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                  what + " read as type " + std::to_string(type));
  }
  static const Attribute none{};
  const auto found = d.attributes.find(name);
  const Attribute& attribute = found == d.attributes.end() ? none : found->second;
  // The library does not say how many knob choices there are unless it has somewhere to put them.
  const bool counts = requested > 0 || name != CUDNN_ATTR_ENGINECFG_KNOB_CHOICES;
  if (count != nullptr) *count = counts ? attribute.count : 0;
  const int64_t copied = std::min(requested, attribute.count);
  if (copied > 0 && values == nullptr) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, what + " read into null");
  }
  for (int64_t i = 0; i < copied && type == CUDNN_TYPE_BACKEND_DESCRIPTOR; ++i) {
    Holder* const to = Find(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
    if (to == nullptr || to->descriptor->type != attribute.descriptors[i]->type) {
      return Refuse(CUDNN_STATUS_BAD_PARAM, what + " read into a descriptor of another type");
    }
    to->descriptor = std::make_shared<Descriptor>(*attribute.descriptors[i]);
  }
  if (copied > 0 && type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    std::memcpy(values, attribute.bytes.data(), copied * BytesOf(type));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (descriptor == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "null descriptor");
  const Holder* const holder = Find(descriptor);
  if (holder == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (holder->descriptor->finalized) return Refuse(CUDNN_STATUS_BAD_PARAM, "finalized twice");
  const HandleUse use(HandleOf(*holder->descriptor));
  if (!use.alone()) return HandleUse::Refused();
  const cudnnStatus_t status = Finalize(*holder->descriptor);
  holder->descriptor->finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  if (handle == nullptr || plan == nullptr || pack == nullptr) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "null handle, plan or variant pack");
  }
  Handle* const found = FindHandle(handle);
  const Holder* const plan_holder = Find(plan);
  const Holder* const pack_holder = Find(pack);
  if (found == nullptr || plan_holder == nullptr || pack_holder == nullptr) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const HandleUse use(found);
  if (!use.alone()) return HandleUse::Refused();
  return Execute(*found, *plan_holder->descriptor, *pack_holder->descriptor);
}

}  // extern "C"
