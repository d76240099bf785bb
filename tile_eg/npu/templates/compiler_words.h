// What CANN's compiler knows without a header, so that the machine's own compiler reads CANN's headers: qualifiers, types, and
// intrinsics, which take anything here. So a call of an intrinsic is not checked; what AscendC's own functions are given, is.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __sync_alias__
#define __simd_vf__
#define __simd_callee__
#define __simt_vf__
#define __inout_pipe__(...)
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __check_sync_alias__
#define __attr__(...)
#define __BLOCK_LOCAL__
#define __WORKGROUP_LOCAL__
#define __host__
#define __VEC_SCOPE__
#define __biasbuf__
#define __ssbuf__
#define __SIMT_DEVICE_FUNCTIONS_DECL__

#define __forceinline__ inline
struct half { _Float16 v; half()=default; template<class T, class=std::enable_if_t<std::is_arithmetic_v<T>>> constexpr half(T
    x):v((_Float16)x){} constexpr operator float() const {return (float)v;} };
struct bfloat16_t { unsigned short v; bfloat16_t()=default; bfloat16_t(float); operator float() const; };
enum QuantMode_t { NoQuant, DEQF16, DEQS16, F322BF16, F322F16, QF162B8_PRE, QF162S16_PRE, QF162S4_PRE, QF322B8_PRE,
    QF322BF16_PRE, QF322F16_PRE, QF322F32_PRE, QF322FP8_PRE, QF322HIF8_PRE, QF322HIF8_PRE_HYBRID, QS322BF16_PRE, REQ4, REQ8,
    VDEQF16, VDEQS16, VQF162B8_PRE, VQF162S16_PRE, VQF162S4_PRE, VQF322B8_PRE, VQF322BF16_PRE, VQF322F16_PRE, VQF322F32_PRE,
    VQF322FP8_PRE, VQF322HIF8_PRE, VQF322HIF8_PRE_HYBRID, VQS322BF16_PRE, VREQ4, VREQ8 };
enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_MTE4, PIPE_MTE5, PIPE_V2, PIPE_FIX,
    PIPE_NUM_ };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum class dcci_dst_t { CACHELINE_ALL, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class cache_line_t { SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE };
enum mem_dsb_t { DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ };
enum pad_t { PAD_NONE, PAD_MODE1, PAD_MODE2, PAD_MODE3, PAD_MODE4, PAD_MODE5, PAD_MODE6, PAD_MODE7, PAD_MODE8 };
enum mem_t { L1, L0A, L0B, L0C, UB, BT };
enum addr_cal_mode_t { inc, dec };
enum class Order_t { VALUE_INDEX, INDEX_VALUE, ONLY_VALUE, ONLY_INDEX };
enum ub_addr8_t { VA0, VA1, VA2, VA3, VA4, VA5, VA6, VA7 };
enum atomic_type_t { ATOMIC_NONE, ATOMIC_F32, ATOMIC_F16, ATOMIC_S16, ATOMIC_S32, ATOMIC_S8, ATOMIC_BF16 };
enum atomic_op_t { ATOMIC_SUM, ATOMIC_MAX_, ATOMIC_MIN_ };
enum half128_t { L128, H128 };
namespace bisheng { namespace cce { template<class... A> void metrics_prof_start(A...) {} template<class... A> void
    metrics_prof_stop(A...) {} } }

struct AnyOf {
    template <class T> operator T() const { return T{}; }
};
#define WORD(name) template <class... A> inline uint64_t name(A&&...) { return 0; }
#define VALUE(name) template <class... A> inline AnyOf name(A&&...) { return {}; }
namespace __asc_aicore { // overloads by the space of an address, which the machine's compiler has not
WORD(asc_dump) WORD(asc_dump_cbuf) WORD(asc_dump_gm) WORD(asc_dump_l1buf) WORD(asc_dump_shape_impl) WORD(asc_dump_ubuf)
}
WORD(dci)
WORD(asc_prof_start) WORD(asc_prof_stop) WORD(clz) WORD(copy_cbuf_to_bt) WORD(copy_cbuf_to_fbuf) WORD(copy_cbuf_to_gm)
WORD(copy_gm_to_cbuf) WORD(copy_gm_to_cbuf_multi_nd2nz_b16) WORD(copy_gm_to_cbuf_multi_nd2nz_b32s)
WORD(copy_gm_to_cbuf_multi_nd2nz_b8) WORD(copy_gm_to_ubuf) WORD(copy_gm_to_ubuf_align_b16) WORD(copy_gm_to_ubuf_align_b32)
WORD(copy_gm_to_ubuf_align_b8) WORD(copy_matrix_cbuf_to_cc) WORD(copy_matrix_cc_to_cbuf) WORD(copy_matrix_cc_to_gm)
WORD(copy_ubuf_to_gm) WORD(copy_ubuf_to_gm_align_b16) WORD(copy_ubuf_to_gm_align_b32) WORD(copy_ubuf_to_gm_align_b8)
WORD(copy_ubuf_to_ubuf) WORD(create_ca_matrix) WORD(create_ca_matrix_bf16) WORD(create_cb_matrix) WORD(create_cb_matrix_bf16)
WORD(create_cbuf_matrix) WORD(create_cbuf_matrix_bf16) WORD(dc_preload) WORD(dcci) WORD(ffts_cross_core_sync)
WORD(get_acc_val) WORD(get_arch_ver) WORD(get_block_idx) WORD(get_block_num) WORD(get_cmpmask) WORD(get_condition_flag)
WORD(get_coreid) WORD(get_ctrl) WORD(get_ffts_base_addr) WORD(get_fpc) WORD(get_icache_prl_st) WORD(get_imm)
WORD(get_l2_in_main) WORD(get_l2_vaddr_base) WORD(get_lpcnt) WORD(get_max_min_cnt) WORD(get_overflow_status)
WORD(get_para_base) WORD(get_pc) WORD(get_rsvd_cnt) WORD(get_st_atomic_cfg) WORD(get_stack_phy_base) WORD(get_status)
WORD(get_subblockdim) WORD(get_subblockid) WORD(get_sys_cnt) WORD(get_thread_dim) WORD(get_thread_id) WORD(get_vms4_sr)
WORD(img2colv2_cbuf_to_ca) WORD(img2colv2_cbuf_to_ca_s4) WORD(img2colv2_cbuf_to_cb) WORD(img2colv2_cbuf_to_ub) WORD(ld_dev)
WORD(load_cbuf_to_ca) WORD(load_cbuf_to_ca_s4) WORD(load_cbuf_to_ca_transpose) WORD(load_cbuf_to_cb) WORD(load_cbuf_to_cb_s4)
WORD(load_cbuf_to_cb_sp) WORD(load_cbuf_to_cb_transpose) WORD(load_cbuf_to_cb_transpose_s4) WORD(load_gm_to_ca)
WORD(load_gm_to_cb) WORD(load_gm_to_cbuf) WORD(load_image_to_cbuf) WORD(mad) WORD(mad_s4) WORD(mad_sp) WORD(pipe_barrier)
WORD(preload) WORD(sbitset0) WORD(sbitset1) WORD(scatter_vnchwconv_b16) WORD(scatter_vnchwconv_b32) WORD(scatter_vnchwconv_b8)
WORD(set_aipp_spr_0) WORD(set_aipp_spr_1) WORD(set_aipp_spr_10) WORD(set_aipp_spr_11) WORD(set_aipp_spr_12)
WORD(set_aipp_spr_13) WORD(set_aipp_spr_14) WORD(set_aipp_spr_15) WORD(set_aipp_spr_16) WORD(set_aipp_spr_17)
WORD(set_aipp_spr_18) WORD(set_aipp_spr_19) WORD(set_aipp_spr_2) WORD(set_aipp_spr_20) WORD(set_aipp_spr_21)
WORD(set_aipp_spr_22) WORD(set_aipp_spr_23) WORD(set_aipp_spr_24) WORD(set_aipp_spr_3) WORD(set_aipp_spr_4)
WORD(set_aipp_spr_5) WORD(set_aipp_spr_6) WORD(set_aipp_spr_7) WORD(set_aipp_spr_8) WORD(set_aipp_spr_9) WORD(set_atomic_add)
WORD(set_atomic_bf16) WORD(set_atomic_f16) WORD(set_atomic_f32) WORD(set_atomic_max) WORD(set_atomic_min)
WORD(set_atomic_none) WORD(set_atomic_s16) WORD(set_atomic_s32) WORD(set_atomic_s8) WORD(set_cmpmask) WORD(set_condition_flag)
WORD(set_ctrl) WORD(set_data_exp_0) WORD(set_data_exp_1) WORD(set_data_exp_2) WORD(set_data_exp_3) WORD(set_deqscale)
WORD(set_ffts_base_addr) WORD(set_flag) WORD(set_fmatrix) WORD(set_fmatrix_b) WORD(set_fpc) WORD(set_l0_set_value_bf16)
WORD(set_l0_set_value_h) WORD(set_l0a_2d) WORD(set_l0b_2d) WORD(set_l1_2d) WORD(set_l1_3d_size) WORD(set_l3d_rpt)
WORD(set_lpcnt) WORD(set_lrelu_alpha) WORD(set_mask_count) WORD(set_mask_norm) WORD(set_mov_pad_val) WORD(set_nd_para)
WORD(set_padding) WORD(set_pcie_rd_ctrl) WORD(set_quant_pre) WORD(set_st_atomic_cfg) WORD(set_va_reg_sb) WORD(set_vector_mask)
WORD(sff0) WORD(sflbits) WORD(st_dev) WORD(trap) WORD(vabs) WORD(vadd) WORD(vaddrelu) WORD(vaddreluconv_f162s8)
WORD(vaddreluconv_f322f16) WORD(vaddreluconv_s162s8) WORD(vaddreluconv_vdeqs162b8) WORD(vadds) WORD(vand) WORD(vaxpy)
WORD(vbitsort) WORD(vbrcb) WORD(vcadd) WORD(vcgadd) WORD(vcgmax) WORD(vcgmin) WORD(vcmax) WORD(vcmin) WORD(vcmp_eq)
WORD(vcmp_ge) WORD(vcmp_gt) WORD(vcmp_le) WORD(vcmp_lt) WORD(vcmp_ne) WORD(vcmpv_eq) WORD(vcmpv_ge) WORD(vcmpv_gt)
WORD(vcmpv_le) WORD(vcmpv_lt) WORD(vcmpv_ne) WORD(vcmpvs_eq) WORD(vcmpvs_ge) WORD(vcmpvs_gt) WORD(vcmpvs_le) WORD(vcmpvs_lt)
WORD(vcmpvs_ne) WORD(vconv_bf162f32) WORD(vconv_bf162s32a) WORD(vconv_bf162s32c) WORD(vconv_bf162s32f) WORD(vconv_bf162s32r)
WORD(vconv_bf162s32z) WORD(vconv_deq) WORD(vconv_deqs162b8h) WORD(vconv_deqs162b8l) WORD(vconv_f162f32) WORD(vconv_f162s16a)
WORD(vconv_f162s16c) WORD(vconv_f162s16f) WORD(vconv_f162s16r) WORD(vconv_f162s16z) WORD(vconv_f162s32a) WORD(vconv_f162s32c)
WORD(vconv_f162s32f) WORD(vconv_f162s32r) WORD(vconv_f162s32z) WORD(vconv_f162s4) WORD(vconv_f162s4a) WORD(vconv_f162s4c)
WORD(vconv_f162s4f) WORD(vconv_f162s4r) WORD(vconv_f162s4z) WORD(vconv_f162s8) WORD(vconv_f162s8a) WORD(vconv_f162s8c)
WORD(vconv_f162s8f) WORD(vconv_f162s8r) WORD(vconv_f162s8z) WORD(vconv_f162u8) WORD(vconv_f162u8a) WORD(vconv_f162u8c)
WORD(vconv_f162u8f) WORD(vconv_f162u8r) WORD(vconv_f162u8z) WORD(vconv_f322bf16a) WORD(vconv_f322bf16c) WORD(vconv_f322bf16f)
WORD(vconv_f322bf16r) WORD(vconv_f322bf16z) WORD(vconv_f322f16) WORD(vconv_f322f16a) WORD(vconv_f322f16c) WORD(vconv_f322f16f)
WORD(vconv_f322f16o) WORD(vconv_f322f16r) WORD(vconv_f322f16z) WORD(vconv_f322f32a) WORD(vconv_f322f32c) WORD(vconv_f322f32f)
WORD(vconv_f322f32r) WORD(vconv_f322f32z) WORD(vconv_f322s16a) WORD(vconv_f322s16c) WORD(vconv_f322s16f) WORD(vconv_f322s16r)
WORD(vconv_f322s16z) WORD(vconv_f322s32a) WORD(vconv_f322s32c) WORD(vconv_f322s32f) WORD(vconv_f322s32r) WORD(vconv_f322s32z)
WORD(vconv_f322s64a) WORD(vconv_f322s64c) WORD(vconv_f322s64f) WORD(vconv_f322s64r) WORD(vconv_f322s64z) WORD(vconv_s162f16)
WORD(vconv_s162f16a) WORD(vconv_s162f16c) WORD(vconv_s162f16f) WORD(vconv_s162f16r) WORD(vconv_s162f16z) WORD(vconv_s162f32)
WORD(vconv_s322f32) WORD(vconv_s322f32a) WORD(vconv_s322f32c) WORD(vconv_s322f32f) WORD(vconv_s322f32r) WORD(vconv_s322f32z)
WORD(vconv_s322s16) WORD(vconv_s322s64) WORD(vconv_s42f16) WORD(vconv_s642f32a) WORD(vconv_s642f32c) WORD(vconv_s642f32f)
WORD(vconv_s642f32r) WORD(vconv_s642f32z) WORD(vconv_s642s32) WORD(vconv_s82f16) WORD(vconv_u82f16) WORD(vconv_vdeqs162b8h)
WORD(vconv_vdeqs162b8l) WORD(vcopy) WORD(vcpadd) WORD(vdiv) WORD(vector_dup) WORD(vexp) WORD(vgather) WORD(vgatherb)
WORD(vld_va_reg) WORD(vln) WORD(vlrelu) WORD(vmadd) WORD(vmaddrelu) WORD(vmax) WORD(vmaxs) WORD(vmin) WORD(vmins) WORD(vmla)
WORD(vmrgsort4) WORD(vmul) WORD(vmulconv_f162s8) WORD(vmulconv_f162u8) WORD(vmuls) WORD(vnot) WORD(vor) WORD(vrec)
WORD(vreducev2) WORD(vrelu) WORD(vrsqrt) WORD(vsel) WORD(vshl) WORD(vshr) WORD(vsqrt) WORD(vsub) WORD(vsubrelu)
WORD(vsubreluconv_f162s8) WORD(vsubreluconv_f322f16) WORD(vsubreluconv_s162s8) WORD(vtranspose) WORD(wait_flag)
WORD(wait_flag_dev)

#if __NPU_ARCH__ == 3510
#define __simt_callee__
#define __sync_noalias__
WORD(asc_debug_get_block_idx) WORD(asc_mark_stamp) WORD(asc_vf_debug_ub2gm) WORD(broadcast_ub_to_cc) WORD(copy_cbuf_to_ubuf)
WORD(copy_gm_to_cbuf_align_v2) WORD(copy_gm_to_cbuf_multi_dn2nz) WORD(copy_gm_to_cbuf_multi_nd2nz)
WORD(copy_gm_to_ubuf_align_v2) WORD(copy_matrix_cc_to_ub) WORD(copy_ubuf_to_cbuf) WORD(copy_ubuf_to_gm_align_v2) WORD(dsb)
WORD(get_ar) WORD(get_buf) WORD(get_repeat_ceiling) WORD(get_shmem_sz) WORD(init_printf_ubuf_addr_aicore) WORD(ldva)
WORD(load_cbuf_to_ca_mx) WORD(load_cbuf_to_cb_mx) WORD(load_gm_to_cbuf_2dv2) WORD(load_gm_to_cbuf_2dv2_s4) WORD(mad_mx)
WORD(mem_bar) WORD(movvp) WORD(nd_dma_dci) WORD(ppack) WORD(pst) WORD(psts) WORD(pstu) WORD(punpack) WORD(rls_buf)
WORD(set_channel_para)
WORD(set_intra_block) WORD(set_loop0_stride_nddma) WORD(set_loop1_stride_nddma) WORD(set_loop1_stride_outtoub)
WORD(set_loop1_stride_ubtoout) WORD(set_loop2_stride_nddma) WORD(set_loop2_stride_outtoub) WORD(set_loop2_stride_ubtoout)
WORD(set_loop3_para) WORD(set_loop3_stride_nddma) WORD(set_loop4_stride_nddma) WORD(set_loop_size_outtoub)
WORD(set_loop_size_ubtoout) WORD(set_mte2_nz_para) WORD(set_mte2_src_para) WORD(set_pad_cnt_nddma) WORD(set_pad_val_nddma)
WORD(sff1) WORD(sprclr) WORD(vabsdif) WORD(vaddc) WORD(vaddcs) WORD(vbr) WORD(vbs) WORD(vci) WORD(vcmp) WORD(vcmps_eq)
WORD(vcmps_ge) WORD(vcmps_gt) WORD(vcmps_le) WORD(vcmps_lt) WORD(vcmps_ne) WORD(vcvt) WORD(vcvt_f162s4) WORD(vcvt_s162s4)
WORD(vcvt_s42bf16) WORD(vcvt_s42f16) WORD(vcvt_s42s16) WORD(vdintlv) WORD(vdup) WORD(vexpdif) WORD(vgather2) WORD(vintlv)
WORD(vld) WORD(vlda) WORD(vldas) WORD(vlds) WORD(vldu) WORD(vldus) WORD(vmula) WORD(vmull) WORD(vmulscvt) WORD(vneg)
WORD(vpack) WORD(vprelu) WORD(vscatter) WORD(vselr) WORD(vshls) WORD(vshrs) WORD(vsldb) WORD(vsqz) WORD(vsstb) WORD(vst)
WORD(vsta) WORD(vstar) WORD(vstas) WORD(vsts) WORD(vstu) WORD(vstur) WORD(vstus) WORD(vsubc) WORD(vsubcs) WORD(vtrc)
WORD(vunpack) WORD(vusqz) WORD(vxor) WORD(wait_intra_block)
VALUE(pand) VALUE(pdintlv_b16) VALUE(pdintlv_b32) VALUE(pdintlv_b8) VALUE(pintlv_b16) VALUE(pintlv_b32) VALUE(pintlv_b8)
VALUE(movp_b16) VALUE(movp_b32) VALUE(pld) VALUE(plds) VALUE(plt_b16) VALUE(plt_b32) VALUE(plt_b8) VALUE(pmov) VALUE(pnot)
VALUE(por) VALUE(psel)
VALUE(pset_b16) VALUE(pset_b32) VALUE(pset_b8) VALUE(pxor) VALUE(vag_b16) VALUE(vag_b32) VALUE(vag_b8) VALUE(vmov)
#define TYPE(name) struct name {};
TYPE(vector_bool) TYPE(vector_address) TYPE(vector_align) TYPE(vector_f32) TYPE(vector_f16) TYPE(vector_s16) TYPE(vector_s32)
TYPE(vector_u16) TYPE(vector_u32) TYPE(vector_s8) TYPE(vector_u8) TYPE(vector_u64) TYPE(vector_s64) TYPE(vector_bf16)
TYPE(vector_s4x2) TYPE(vector_hif8) TYPE(vector_f8e8m0) TYPE(vector_f8e5m2) TYPE(vector_f8e4m3) TYPE(vector_f4e2m1x2)
TYPE(vector_f4e1m2x2)
#define CHOICE(name) enum class name : int { N0 };
CHOICE(Dist) CHOICE(Post) CHOICE(Part) CHOICE(HiloPart) CHOICE(DistVST) CHOICE(RoundingSaturation) CHOICE(Pat) CHOICE(Part_T)
CHOICE(Pos) CHOICE(Order) CHOICE(Spr) CHOICE(StoreMode) CHOICE(Mode) CHOICE(CpuMode) CHOICE(Bin)
#define CONSTANT(name) constexpr std::integral_constant<int, __COUNTER__> name{};
CONSTANT(POST_UPDATE) CONSTANT(NO_POST_UPDATE) CONSTANT(LOWER) CONSTANT(HIGHER) CONSTANT(PART_EVEN) CONSTANT(PART_ODD)
CONSTANT(MODE_ZEROING) CONSTANT(MODE_MERGING) CONSTANT(MODE_UNKNOWN) CONSTANT(PAT_ALL) CONSTANT(ST_VLD) CONSTANT(ST_VST)
CONSTANT(SV_ALL) CONSTANT(VLD_ST) CONSTANT(VLD_VST) CONSTANT(VST_LD) CONSTANT(VST_ST) CONSTANT(VST_VLD) CONSTANT(VST_VST)
CONSTANT(VS_ALL) CONSTANT(VV_ALL) CONSTANT(LD_VST)
struct hifloat8_t { uint8_t v; };
struct fp8_e4m3fn_t { uint8_t v; };
struct fp8_e5m2_t { uint8_t v; };
struct fp8_e8m0_t { uint8_t v; };
struct fp4x2_e2m1_t { uint8_t v; };
struct fp4x2_e1m2_t { uint8_t v; };
using float4_e1m2x2_t = fp4x2_e1m2_t; using float4_e2m1x2_t = fp4x2_e2m1_t; using float8_e4m3_t = fp8_e4m3fn_t; using
    float8_e5m2_t = fp8_e5m2_t; using float8_e8m0_t = fp8_e8m0_t;
struct int4x2_t { uint8_t v; }; struct hifloat4x2_t { uint8_t v; };
enum class ROUND : int { R, A, F, C, Z, O, H, N0 };
enum class QuantMode_post : int { NoConv };
namespace bisheng { namespace cce { template<class... A> void mark_stamp(A...) {} } } namespace __cce_scalar {
    template<class... A> void copy_ubuf_to_ubuf(A&&...) {} }
constexpr int RS_DISABLE = 0, ROUND_Z = 0, ROUND_R = 1, PAT_ALLF = 2;
#else
struct vector_bool {}; struct vector_address {}; struct vector_align {};
#endif
