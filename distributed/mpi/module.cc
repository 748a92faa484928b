// The module for MPI: HalftoneTransport by the functions of one MPI, and the only source that
// includes its header. It uses what MPI 3.0 has, so Open MPI and MPICH do.
#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "halftone/distributed/transport.h"

namespace {

using halftone::distributed::kTransportAbi;

// A communicator of our own: messages of the program cannot be taken for ours.
MPI_Comm world = MPI_COMM_NULL;
bool own_mpi = false;  // else the program has initialised it and will finalize it
char library[MPI_MAX_LIBRARY_VERSION_STRING];

int LocalRanks(int* local_rank, int* local_size) {
  MPI_Comm host = MPI_COMM_NULL;
  int error = MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  if (error == MPI_SUCCESS) error = MPI_Comm_rank(host, local_rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(host, local_size);
  if (error == MPI_SUCCESS) error = MPI_Comm_free(&host);
  return error;
}

int Init(int* rank, int* size, int* local_rank, int* local_size) {
  int is_initialised = 0;
  int error = MPI_Initialized(&is_initialised);
  if (error == MPI_SUCCESS && is_initialised == 0) {
    int provided = 0;
    // What is called from several threads is called by one at a time.
    error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    own_mpi = true;
  }
  if (error == MPI_SUCCESS) error = MPI_Comm_dup(MPI_COMM_WORLD, &world);
  if (error == MPI_SUCCESS) error = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  if (error == MPI_SUCCESS) error = MPI_Comm_rank(world, rank);
  if (error == MPI_SUCCESS) error = MPI_Comm_size(world, size);
  return error == MPI_SUCCESS ? LocalRanks(local_rank, local_size) : error;
}

int Send(const void* data, size_t bytes, int to, int tag, void* request) {
  return MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, world,
                   static_cast<MPI_Request*>(request));
}

int Receive(void* data, size_t bytes, int from, int tag, void* request) {
  return MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, world,
                   static_cast<MPI_Request*>(request));
}

int Test(void* request, int* done) {
  return MPI_Test(static_cast<MPI_Request*>(request), done, MPI_STATUS_IGNORE);
}

int Finalize() {
  if (!own_mpi) return MPI_SUCCESS;
  return MPI_Finalize();
}

void Abort(int code) { MPI_Abort(world == MPI_COMM_NULL ? MPI_COMM_WORLD : world, code); }

void ErrorText(int error, char* text, size_t bytes) {
  char own[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, own, &length);
  std::snprintf(text, bytes, "%s", own);
}

}  // namespace

extern "C" const HalftoneTransport* halftone_transport() {
  int length = 0;
  MPI_Get_library_version(library, &length);
  // Its first line, up to the word that tells who built it.
  library[std::strcspn(library, ",\n")] = '\0';
  // Tags up to 32767 and messages up to 2^31 - 1 bytes are what every MPI has.
  static const HalftoneTransport transport = {
      kTransportAbi, library, sizeof(MPI_Request), size_t{1} << 30, 32767,     &Init, &Send,
      &Receive,      &Test,   &Finalize,           &Abort,          &ErrorText};
  return &transport;
}
