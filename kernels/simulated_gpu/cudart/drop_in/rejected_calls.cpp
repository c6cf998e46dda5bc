// SPDX-License-Identifier: Apache-2.0
// The other functions of libcudart.so.13: textures and arrays, graphics, IPC, virtual memory, and what no program asked for
// yet. Programs that name them can be loaded; a call is reported by its name, and fails.
//
// Without cuda_runtime_api.h, which declares them with their arguments. They read none.
#include "kernels/simulated_gpu/cudart/drop_in/rejection.h"

#define GRADRING_REJECTED(F) \
  F(__cudaGetProcAddress) F(__cudaRegisterHostVar) F(__cudaRegisterUnifiedTable) F(cudaArrayGetInfo) \
  F(cudaArrayGetMemoryRequirements) F(cudaArrayGetPlane) F(cudaArrayGetSparseProperties) \
  F(cudaCreateSurfaceObject) F(cudaCreateTextureObject) F(cudaDestroyExternalMemory) \
  F(cudaDestroyExternalSemaphore) F(cudaDestroySurfaceObject) F(cudaDestroyTextureObject) \
  F(cudaDeviceFlushGPUDirectRDMAWrites) F(cudaDeviceGetByPCIBusId) F(cudaDeviceGetGraphMemAttribute) \
  F(cudaDeviceGetHostAtomicCapabilities) F(cudaDeviceGetNvSciSyncAttributes) F(cudaDeviceGetP2PAtomicCapabilities) \
  F(cudaDeviceGetTexture1DLinearMaxWidth) F(cudaDeviceGraphMemTrim) F(cudaDeviceRegisterAsyncNotification) \
  F(cudaDeviceSetGraphMemAttribute) F(cudaDeviceSetMemPool) F(cudaDeviceUnregisterAsyncNotification) \
  F(cudaEGLStreamConsumerAcquireFrame) F(cudaEGLStreamConsumerConnect) F(cudaEGLStreamConsumerConnectWithFlags) \
  F(cudaEGLStreamConsumerDisconnect) F(cudaEGLStreamConsumerReleaseFrame) F(cudaEGLStreamProducerConnect) \
  F(cudaEGLStreamProducerDisconnect) F(cudaEGLStreamProducerPresentFrame) F(cudaEGLStreamProducerReturnFrame) \
  F(cudaEventCreateFromEGLSync) F(cudaExternalMemoryGetMappedBuffer) F(cudaExternalMemoryGetMappedMipmappedArray) \
  F(cudaFreeArray) F(cudaFreeMipmappedArray) F(cudaFuncGetParamInfo) F(cudaGLGetDevices) F(cudaGLMapBufferObject) \
  F(cudaGLMapBufferObjectAsync) F(cudaGLRegisterBufferObject) F(cudaGLSetBufferObjectMapFlags) \
  F(cudaGLSetGLDevice) F(cudaGLUnmapBufferObject) F(cudaGLUnmapBufferObjectAsync) F(cudaGLUnregisterBufferObject) \
  F(cudaGetChannelDesc) F(cudaGetExportTable) F(cudaGetFuncBySymbol) F(cudaGetMipmappedArrayLevel) \
  F(cudaGetSurfaceObjectResourceDesc) F(cudaGetTextureObjectResourceDesc) F(cudaGetTextureObjectResourceViewDesc) \
  F(cudaGetTextureObjectTextureDesc) F(cudaGraphAddEventRecordNode) F(cudaGraphAddEventWaitNode) \
  F(cudaGraphAddExternalSemaphoresSignalNode) F(cudaGraphAddExternalSemaphoresWaitNode) \
  F(cudaGraphAddMemAllocNode) F(cudaGraphAddMemFreeNode) F(cudaGraphAddNode) F(cudaGraphChildGraphNodeGetGraph) \
  F(cudaGraphConditionalHandleCreate) F(cudaGraphDebugDotPrint) F(cudaGraphDestroyNode) \
  F(cudaGraphEventRecordNodeGetEvent) F(cudaGraphEventRecordNodeSetEvent) F(cudaGraphEventWaitNodeGetEvent) \
  F(cudaGraphEventWaitNodeSetEvent) F(cudaGraphExecChildGraphNodeSetParams) \
  F(cudaGraphExecEventRecordNodeSetEvent) F(cudaGraphExecEventWaitNodeSetEvent) \
  F(cudaGraphExecExternalSemaphoresSignalNodeSetParams) F(cudaGraphExecExternalSemaphoresWaitNodeSetParams) \
  F(cudaGraphExecGetFlags) F(cudaGraphExecMemcpyNodeSetParamsFromSymbol) \
  F(cudaGraphExecMemcpyNodeSetParamsToSymbol) F(cudaGraphExecNodeSetParams) \
  F(cudaGraphExternalSemaphoresSignalNodeGetParams) F(cudaGraphExternalSemaphoresSignalNodeSetParams) \
  F(cudaGraphExternalSemaphoresWaitNodeGetParams) F(cudaGraphExternalSemaphoresWaitNodeSetParams) \
  F(cudaGraphGetEdges) F(cudaGraphHostNodeGetParams) F(cudaGraphInstantiateWithParams) \
  F(cudaGraphInstantiateWithParams_ptsz) F(cudaGraphKernelNodeCopyAttributes) F(cudaGraphKernelNodeGetAttribute) \
  F(cudaGraphKernelNodeGetParams) F(cudaGraphKernelNodeSetAttribute) F(cudaGraphMemAllocNodeGetParams) \
  F(cudaGraphMemFreeNodeGetParams) F(cudaGraphMemcpyNodeGetParams) F(cudaGraphMemcpyNodeSetParams1D) \
  F(cudaGraphMemcpyNodeSetParamsFromSymbol) F(cudaGraphMemcpyNodeSetParamsToSymbol) \
  F(cudaGraphMemsetNodeGetParams) F(cudaGraphNodeFindInClone) F(cudaGraphNodeGetDependentNodes) \
  F(cudaGraphNodeGetEnabled) F(cudaGraphNodeSetEnabled) F(cudaGraphNodeSetParams) F(cudaGraphReleaseUserObject) \
  F(cudaGraphRemoveDependencies) F(cudaGraphRetainUserObject) F(cudaGraphUpload_ptsz) \
  F(cudaGraphicsEGLRegisterImage) F(cudaGraphicsGLRegisterBuffer) F(cudaGraphicsGLRegisterImage) \
  F(cudaGraphicsMapResources) F(cudaGraphicsResourceGetMappedEglFrame) \
  F(cudaGraphicsResourceGetMappedMipmappedArray) F(cudaGraphicsResourceGetMappedPointer) \
  F(cudaGraphicsResourceSetMapFlags) F(cudaGraphicsSubResourceGetMappedArray) F(cudaGraphicsUnmapResources) \
  F(cudaGraphicsUnregisterResource) F(cudaGraphicsVDPAURegisterOutputSurface) \
  F(cudaGraphicsVDPAURegisterVideoSurface) F(cudaImportExternalMemory) F(cudaImportExternalSemaphore) \
  F(cudaIpcCloseMemHandle) F(cudaIpcGetEventHandle) F(cudaIpcGetMemHandle) F(cudaIpcOpenEventHandle) \
  F(cudaIpcOpenMemHandle) F(cudaKernelSetAttributeForDevice) F(cudaLibraryEnumerateKernels) \
  F(cudaLibraryGetGlobal) F(cudaLibraryGetKernel) F(cudaLibraryGetKernelCount) F(cudaLibraryGetManaged) \
  F(cudaLibraryGetUnifiedFunction) F(cudaLibraryLoadData) F(cudaLibraryLoadFromFile) F(cudaLibraryUnload) \
  F(cudaLogsCurrent) F(cudaLogsDumpToFile) F(cudaLogsDumpToMemory) F(cudaLogsRegisterCallback) \
  F(cudaLogsUnregisterCallback) F(cudaMalloc3DArray) F(cudaMallocArray) F(cudaMallocMipmappedArray) \
  F(cudaMemDiscardAndPrefetchBatchAsync) F(cudaMemDiscardAndPrefetchBatchAsync_ptsz) F(cudaMemDiscardBatchAsync) \
  F(cudaMemDiscardBatchAsync_ptsz) F(cudaMemGetDefaultMemPool) F(cudaMemGetMemPool) F(cudaMemPoolExportPointer) \
  F(cudaMemPoolExportToShareableHandle) F(cudaMemPoolGetAccess) F(cudaMemPoolImportFromShareableHandle) \
  F(cudaMemPoolImportPointer) F(cudaMemPrefetchBatchAsync) F(cudaMemPrefetchBatchAsync_ptsz) \
  F(cudaMemRangeGetAttribute) F(cudaMemRangeGetAttributes) F(cudaMemSetMemPool) F(cudaMemcpy2DArrayToArray) \
  F(cudaMemcpy2DArrayToArray_ptds) F(cudaMemcpy2DFromArray) F(cudaMemcpy2DFromArrayAsync) \
  F(cudaMemcpy2DFromArrayAsync_ptsz) F(cudaMemcpy2DFromArray_ptds) F(cudaMemcpy2DToArray) \
  F(cudaMemcpy2DToArrayAsync) F(cudaMemcpy2DToArrayAsync_ptsz) F(cudaMemcpy2DToArray_ptds) \
  F(cudaMemcpy3DAsync_ptsz) F(cudaMemcpy3DBatchAsync) F(cudaMemcpy3DBatchAsync_ptsz) F(cudaMemcpy3DPeer) \
  F(cudaMemcpy3DPeerAsync) F(cudaMemcpy3DPeerAsync_ptsz) F(cudaMemcpy3DPeer_ptds) F(cudaMemcpy3D_ptds) \
  F(cudaMemcpyArrayToArray) F(cudaMemcpyArrayToArray_ptds) F(cudaMemcpyBatchAsync) F(cudaMemcpyBatchAsync_ptsz) \
  F(cudaMemcpyFromArray) F(cudaMemcpyFromArrayAsync) F(cudaMemcpyFromArrayAsync_ptsz) F(cudaMemcpyFromArray_ptds) \
  F(cudaMemcpyToArray) F(cudaMemcpyToArrayAsync) F(cudaMemcpyToArrayAsync_ptsz) F(cudaMemcpyToArray_ptds) \
  F(cudaMemset2DAsync_ptsz) F(cudaMemset2D_ptds) F(cudaMemset3DAsync_ptsz) F(cudaMemset3D_ptds) \
  F(cudaMipmappedArrayGetMemoryRequirements) F(cudaMipmappedArrayGetSparseProperties) \
  F(cudaOccupancyMaxPotentialClusterSize) F(cudaSetValidDevices) F(cudaSignalExternalSemaphoresAsync) \
  F(cudaSignalExternalSemaphoresAsync_ptsz) F(cudaStreamAttachMemAsync_ptsz) F(cudaStreamBeginCaptureToGraph) \
  F(cudaStreamBeginCaptureToGraph_ptsz) F(cudaStreamCopyAttributes_ptsz) F(cudaStreamGetAttribute) \
  F(cudaStreamGetAttribute_ptsz) F(cudaStreamGetCaptureInfo_ptsz) F(cudaStreamGetId_ptsz) \
  F(cudaStreamSetAttribute_ptsz) F(cudaStreamUpdateCaptureDependencies) \
  F(cudaStreamUpdateCaptureDependencies_ptsz) F(cudaThreadExchangeStreamCaptureMode) F(cudaUserObjectCreate) \
  F(cudaUserObjectRelease) F(cudaUserObjectRetain) F(cudaVDPAUGetDevice) F(cudaVDPAUSetVDPAUDevice) \
  F(cudaWaitExternalSemaphoresAsync) F(cudaWaitExternalSemaphoresAsync_ptsz)

#define GRADRING_REJECT(name) \
  extern "C" int name() { return gradring::simulated_gpu::rejected(#name); }
GRADRING_REJECTED(GRADRING_REJECT)
