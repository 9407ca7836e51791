# Written from the tables of crates/surface: REFERENCE_UPDATE=1 cargo test -p surface

# The options of a part, then the kind of what may follow: a word of compgen, or -W and words.
_copal_options() {
    case $1 in
    'demo') echo '--once -h --help' ;;
    'daemon') echo '-a -o -A -b -f -n -s --memory -F -T -M -S --log-format -P -i -I -p -r -t -l -j -h -W -C -d -V --version -x -? --help' ;;
    'status') echo '-n -h --help' ;;
    'stop') echo '-n -t -h --help' ;;
    'adm') echo '-h --help -n -p -S -t -T -V --strict --optstring' ;;
    'log') echo '-a -A -b -c -C -d -D -E -g -h --help -i -I -k -L -n -P -Q -q -r -R -t -T -u -v -V -w -x -X --json --optstring' ;;
    'ncsa') echo '-a -b -c -C -d -D -E -F -f -g -h --help -j -L -n -P -Q -q -r -R -t -V -w --json --optstring' ;;
    'stat') echo '-1 -f -h --help -I -j -l -n -r -t -V -X -x --optstring' ;;
    'top') echo '-1 -b -c -C -d -E -f -g -h --help -i -I -k -L -n -p -Q -q -r -t -T -x -X -V --optstring' ;;
    'hist') echo '-B -C -d -g -h --help -k -L -m -M -n -p -P -Q -q -r -t -T -V --optstring' ;;
    'why') echo '-f --follow -k --count --json -n -r -t -h --help' ;;
    'keys') echo '--sample --seconds --json -n -r -t -h --help' ;;
    'record') echo '-o --output --for --requests --client-sample --sample -q --query --keep-secrets -d --whole --record-bytes -n -r -t -h --help' ;;
    'replay') echo '--vcl --against --limit --json --markdown --cache-size --warm -p -I -b -h --help' ;;
    'policy') echo '-s --format --urls --json -h --help' ;;
    'bench') echo '-c --connections -t --time -n --requests -r --rate --burst -k --per-connection --idle --warm-up --timeout --threads --urls --log --format --count --zipf --seed -X --method -H --header --http -m --streams --resume --expect-status --expect-bytes --json --no-progress -h --help' ;;
    'observe') echo '--metrics --access-log --otlp --otlp-sample --otlp-query -n -h --help' ;;
    'dash') echo '-n --port --open --view -h --help' ;;
    'init') echo '-b --backend -H --host -f --force -h --help' ;;
    'vcl') echo '-h --help' ;;
    'vcl check') echo '--json --text -p -I --dialect -b --label --storage -h --help' ;;
    'vcl lint') echo '--deny --json --sarif --github -p -I --dialect -b --label --storage -h --help' ;;
    'vcl test') echo '--filter --tap --junit --coverage --coverage-file -p -I -b -h --help' ;;
    'vcl trace') echo '--request --url -H --header --origin --builtin -p -I -b -h --help' ;;
    'vcl fmt') echo '--write --check --diff --stdin -h --help' ;;
    'vcl migrate') echo '-o --in-place -I --dialect --storage -h --help' ;;
    'vcl explain') echo '-h --help' ;;
    'lsp') echo '--stdio -p -I --dialect -b --label --storage -h --help' ;;
    'preflight') echo '--unit --environment --running --pid --vcl --params --hitch --ncsa --root --problems --json -h --help' ;;
    'upgrade') echo '-n -h --help' ;;
    'test') echo '-b -C -D -h --help --help-commands --help-features -i -j -k -L -l -n -p -q -t -v -W' ;;
    esac
}

_copal_value() {
    case "$1 $2" in
    'daemon -a') echo none ;;
    'daemon -o') echo -d ;;
    'daemon -A') echo -f ;;
    'daemon -b') echo none ;;
    'daemon -f') echo -f ;;
    'daemon -n') echo -d ;;
    'daemon -s') echo none ;;
    'daemon --memory') echo '-W auto' ;;
    'daemon -T') echo none ;;
    'daemon -M') echo none ;;
    'daemon -S') echo -f ;;
    'daemon --log-format') echo '-W text plain json' ;;
    'daemon -P') echo -f ;;
    'daemon -i') echo none ;;
    'daemon -I') echo -f ;;
    'daemon -p') echo '-W accept_filter= acceptor_sleep_decay= acceptor_sleep_incr= acceptor_sleep_max= alt_svc_max_age= alt_svc_port= auto_restart= backend_close_notify= backend_dns_ttl= backend_error_reasons= backend_follow_dns= backend_idle_timeout= backend_local_error_holddown= backend_remote_error_holddown= backend_wait_limit= backend_wait_timeout= ban_any_variant= ban_cutoff= ban_dups= ban_lurker_age= ban_lurker_batch= ban_lurker_holdoff= ban_lurker_sleep= between_bytes_timeout= brotli_level= cache_control_targets= cache_status= cache_status_name= cc_command= cc_warnings= cli_limit= cli_timeout= client_half_close= clock_skew= clock_step= compress_after= compress_cpu= connect_timeout= critbit_cooloff= debug= default_grace= default_keep= default_ttl= drain_timeout= esi_fragments_max= esi_parallel= event_loops= eviction_policy= expect_continue_timeout= experimental= feature= fetch_chunksize= fetch_maxchunksize= first_byte_timeout= fleet_history= fleet_join_timeout= fleet_lost_after= fleet_lost_ttl= fleet_when_lost= gzip_buffer= gzip_level= gzip_memlevel= h2_extended_connect= h2_header_table_size= h2_initial_window_size= h2_max_concurrent_streams= h2_max_frame_size= h2_max_header_list_size= h2_rapid_reset= h2_rapid_reset_limit= h2_rapid_reset_period= h2_rx_window_increment= h2_rx_window_low_water= h2_rxbuf_storage= h2_window_timeout= http1_iovs= http_encodings= http_forwarded= http_gzip_support= http_max_hdr= http_policy= http_range_support= http_request_directives= http_req_hdr_len= http_req_size= http_resp_hdr_len= http_resp_size= idle_send_timeout= last_byte_timeout= leak_guard= listen_depth= lru_interval= max_esi_depth= max_restarts= max_retries= max_vcl= max_vcl_handling= no_vary_search= nuke_limit= partial_leniency= pcre2_depth_limit= pcre2_jit_compilation= pcre2_match_limit= ping_interval= pipe_sess_max= pipe_task_deadline= pipe_timeout= pool_req= pool_sess= pool_vbo= prefer_ipv6= request_memory_max= requests_memory_max= rush_exponent= send_timeout= shortlived= sigsegv_handler= slice_bytes= ssl_buffer= sslbuf_pool= storage_demote= storage_placement= storage_promote_bytes= storage_promote_hits= storage_small_bytes= store_set_cookie= syslog_cli_traffic= tcp_fastopen= tcp_keepalive_intvl= tcp_keepalive_probes= tcp_keepalive_time= thread_pool_add_delay= thread_pool_destroy_delay= thread_pool_fail_delay= thread_pool_max= thread_pool_min= thread_pool_reserve= thread_pool_stack= thread_pool_timeout= thread_pool_watchdog= thread_pools= thread_queue_limit= thread_stats_rate= timeout_idle= timeout_linger= tls_cleanup_batch= tls_handshake_timeout= tls_ja3= tls_err_dup_servername= tls_file_poll= transit_buffer= trusted_fronts= uncacheable_ttl= unknown_transfer_encoding= unsized_body_share= vary_language_order= trace_context= vary_language_select= vary_notice= vcc_allow_inline_c= vcc_err_unref= vcc_feature= vcc_unsafe_path= vcl_cooldown= vcl_path= vmod_path= vsl_buffer= vsl_mask= vsl_reasons= vsl_reclen= vsl_space= vsm_free_cooldown= waiting_requests_max= waiting_timeout= workspace_backend= workspace_client= workspace_session= workspace_thread= zstd_level=' ;;
    'daemon -r') echo '-W accept_filter acceptor_sleep_decay acceptor_sleep_incr acceptor_sleep_max alt_svc_max_age alt_svc_port auto_restart backend_close_notify backend_dns_ttl backend_error_reasons backend_follow_dns backend_idle_timeout backend_local_error_holddown backend_remote_error_holddown backend_wait_limit backend_wait_timeout ban_any_variant ban_cutoff ban_dups ban_lurker_age ban_lurker_batch ban_lurker_holdoff ban_lurker_sleep between_bytes_timeout brotli_level cache_control_targets cache_status cache_status_name cc_command cc_warnings cli_limit cli_timeout client_half_close clock_skew clock_step compress_after compress_cpu connect_timeout critbit_cooloff debug default_grace default_keep default_ttl drain_timeout esi_fragments_max esi_parallel event_loops eviction_policy expect_continue_timeout experimental feature fetch_chunksize fetch_maxchunksize first_byte_timeout fleet_history fleet_join_timeout fleet_lost_after fleet_lost_ttl fleet_when_lost gzip_buffer gzip_level gzip_memlevel h2_extended_connect h2_header_table_size h2_initial_window_size h2_max_concurrent_streams h2_max_frame_size h2_max_header_list_size h2_rapid_reset h2_rapid_reset_limit h2_rapid_reset_period h2_rx_window_increment h2_rx_window_low_water h2_rxbuf_storage h2_window_timeout http1_iovs http_encodings http_forwarded http_gzip_support http_max_hdr http_policy http_range_support http_request_directives http_req_hdr_len http_req_size http_resp_hdr_len http_resp_size idle_send_timeout last_byte_timeout leak_guard listen_depth lru_interval max_esi_depth max_restarts max_retries max_vcl max_vcl_handling no_vary_search nuke_limit partial_leniency pcre2_depth_limit pcre2_jit_compilation pcre2_match_limit ping_interval pipe_sess_max pipe_task_deadline pipe_timeout pool_req pool_sess pool_vbo prefer_ipv6 request_memory_max requests_memory_max rush_exponent send_timeout shortlived sigsegv_handler slice_bytes ssl_buffer sslbuf_pool storage_demote storage_placement storage_promote_bytes storage_promote_hits storage_small_bytes store_set_cookie syslog_cli_traffic tcp_fastopen tcp_keepalive_intvl tcp_keepalive_probes tcp_keepalive_time thread_pool_add_delay thread_pool_destroy_delay thread_pool_fail_delay thread_pool_max thread_pool_min thread_pool_reserve thread_pool_stack thread_pool_timeout thread_pool_watchdog thread_pools thread_queue_limit thread_stats_rate timeout_idle timeout_linger tls_cleanup_batch tls_handshake_timeout tls_ja3 tls_err_dup_servername tls_file_poll transit_buffer trusted_fronts uncacheable_ttl unknown_transfer_encoding unsized_body_share vary_language_order trace_context vary_language_select vary_notice vcc_allow_inline_c vcc_err_unref vcc_feature vcc_unsafe_path vcl_cooldown vcl_path vmod_path vsl_buffer vsl_mask vsl_reasons vsl_reclen vsl_space vsm_free_cooldown waiting_requests_max waiting_timeout workspace_backend workspace_client workspace_session workspace_thread zstd_level' ;;
    'daemon -t') echo none ;;
    'daemon -l') echo none ;;
    'daemon -j') echo none ;;
    'daemon -h') echo '-W critbit classic simple' ;;
    'daemon -W') echo '-W epoll poll' ;;
    'daemon -x') echo '-W builtin cli optstring parameter vsl' ;;
    'status -n') echo -d ;;
    'stop -n') echo -d ;;
    'stop -t') echo '-W seconds off' ;;
    'adm -n') echo -d ;;
    'adm -S') echo -f ;;
    'adm -t') echo none ;;
    'adm -T') echo none ;;
    'log -g') echo '-W session request vxid raw' ;;
    'log -i') echo '-W Debug Error CLI SessOpen SessClose BackendOpen BackendReuse BackendClose HttpGarbage Proxy ProxyGarbage Backend Length FetchError ReqMethod ReqURL ReqProtocol ReqStatus ReqReason ReqHeader ReqUnset ReqLost RespMethod RespURL RespProtocol RespStatus RespReason RespHeader RespUnset RespLost BereqMethod BereqURL BereqProtocol BereqStatus BereqReason BereqHeader BereqUnset BereqLost BerespMethod BerespURL BerespProtocol BerespStatus BerespReason BerespHeader BerespUnset BerespLost ObjMethod ObjURL ObjProtocol ObjStatus ObjReason ObjHeader ObjUnset ObjLost BogoHeader LostHeader TTL Fetch_Body VCL_acl VCL_call VCL_trace VCL_return ReqStart Hit HitPass ExpBan ExpKill WorkThread ESI_xmlerror Hash Backend_health VCL_Log VCL_Error Gzip Link Begin End VSL Storage Timestamp ReqAcct PipeAcct BereqAcct VfpAcct Witness BackendStart H2RxHdr H2RxBody H2TxHdr H2TxBody HitMiss Filters SessError VCL_use Notice VdpAcct TLS BackendSSL' ;;
    'log -I') echo none ;;
    'log -k') echo none ;;
    'log -L') echo none ;;
    'log -n') echo -d ;;
    'log -P') echo -f ;;
    'log -Q') echo -f ;;
    'log -q') echo none ;;
    'log -r') echo -f ;;
    'log -R') echo none ;;
    'log -t') echo '-W seconds off' ;;
    'log -T') echo none ;;
    'log -w') echo -f ;;
    'log -x') echo '-W Debug Error CLI SessOpen SessClose BackendOpen BackendReuse BackendClose HttpGarbage Proxy ProxyGarbage Backend Length FetchError ReqMethod ReqURL ReqProtocol ReqStatus ReqReason ReqHeader ReqUnset ReqLost RespMethod RespURL RespProtocol RespStatus RespReason RespHeader RespUnset RespLost BereqMethod BereqURL BereqProtocol BereqStatus BereqReason BereqHeader BereqUnset BereqLost BerespMethod BerespURL BerespProtocol BerespStatus BerespReason BerespHeader BerespUnset BerespLost ObjMethod ObjURL ObjProtocol ObjStatus ObjReason ObjHeader ObjUnset ObjLost BogoHeader LostHeader TTL Fetch_Body VCL_acl VCL_call VCL_trace VCL_return ReqStart Hit HitPass ExpBan ExpKill WorkThread ESI_xmlerror Hash Backend_health VCL_Log VCL_Error Gzip Link Begin End VSL Storage Timestamp ReqAcct PipeAcct BereqAcct VfpAcct Witness BackendStart H2RxHdr H2RxBody H2TxHdr H2TxBody HitMiss Filters SessError VCL_use Notice VdpAcct TLS BackendSSL' ;;
    'log -X') echo none ;;
    'ncsa -F') echo none ;;
    'ncsa -f') echo -f ;;
    'ncsa -g') echo '-W request vxid' ;;
    'ncsa -L') echo none ;;
    'ncsa -n') echo -d ;;
    'ncsa -P') echo -f ;;
    'ncsa -Q') echo -f ;;
    'ncsa -q') echo none ;;
    'ncsa -r') echo -f ;;
    'ncsa -R') echo none ;;
    'ncsa -t') echo '-W seconds off' ;;
    'ncsa -w') echo -f ;;
    'stat -f') echo none ;;
    'stat -I') echo none ;;
    'stat -n') echo -d ;;
    'stat -t') echo '-W seconds off' ;;
    'stat -X') echo none ;;
    'top -g') echo '-W session request vxid raw' ;;
    'top -i') echo '-W Debug Error CLI SessOpen SessClose BackendOpen BackendReuse BackendClose HttpGarbage Proxy ProxyGarbage Backend Length FetchError ReqMethod ReqURL ReqProtocol ReqStatus ReqReason ReqHeader ReqUnset ReqLost RespMethod RespURL RespProtocol RespStatus RespReason RespHeader RespUnset RespLost BereqMethod BereqURL BereqProtocol BereqStatus BereqReason BereqHeader BereqUnset BereqLost BerespMethod BerespURL BerespProtocol BerespStatus BerespReason BerespHeader BerespUnset BerespLost ObjMethod ObjURL ObjProtocol ObjStatus ObjReason ObjHeader ObjUnset ObjLost BogoHeader LostHeader TTL Fetch_Body VCL_acl VCL_call VCL_trace VCL_return ReqStart Hit HitPass ExpBan ExpKill WorkThread ESI_xmlerror Hash Backend_health VCL_Log VCL_Error Gzip Link Begin End VSL Storage Timestamp ReqAcct PipeAcct BereqAcct VfpAcct Witness BackendStart H2RxHdr H2RxBody H2TxHdr H2TxBody HitMiss Filters SessError VCL_use Notice VdpAcct TLS BackendSSL' ;;
    'top -I') echo none ;;
    'top -k') echo none ;;
    'top -L') echo none ;;
    'top -n') echo -d ;;
    'top -p') echo none ;;
    'top -Q') echo -f ;;
    'top -q') echo none ;;
    'top -r') echo -f ;;
    'top -t') echo '-W seconds off' ;;
    'top -T') echo none ;;
    'top -x') echo '-W Debug Error CLI SessOpen SessClose BackendOpen BackendReuse BackendClose HttpGarbage Proxy ProxyGarbage Backend Length FetchError ReqMethod ReqURL ReqProtocol ReqStatus ReqReason ReqHeader ReqUnset ReqLost RespMethod RespURL RespProtocol RespStatus RespReason RespHeader RespUnset RespLost BereqMethod BereqURL BereqProtocol BereqStatus BereqReason BereqHeader BereqUnset BereqLost BerespMethod BerespURL BerespProtocol BerespStatus BerespReason BerespHeader BerespUnset BerespLost ObjMethod ObjURL ObjProtocol ObjStatus ObjReason ObjHeader ObjUnset ObjLost BogoHeader LostHeader TTL Fetch_Body VCL_acl VCL_call VCL_trace VCL_return ReqStart Hit HitPass ExpBan ExpKill WorkThread ESI_xmlerror Hash Backend_health VCL_Log VCL_Error Gzip Link Begin End VSL Storage Timestamp ReqAcct PipeAcct BereqAcct VfpAcct Witness BackendStart H2RxHdr H2RxBody H2TxHdr H2TxBody HitMiss Filters SessError VCL_use Notice VdpAcct TLS BackendSSL' ;;
    'top -X') echo none ;;
    'hist -B') echo none ;;
    'hist -g') echo '-W request vxid' ;;
    'hist -k') echo none ;;
    'hist -L') echo none ;;
    'hist -m') echo none ;;
    'hist -M') echo none ;;
    'hist -n') echo -d ;;
    'hist -p') echo none ;;
    'hist -P') echo -f ;;
    'hist -Q') echo -f ;;
    'hist -q') echo none ;;
    'hist -r') echo -f ;;
    'hist -t') echo '-W seconds off' ;;
    'hist -T') echo none ;;
    'why -k'|'why --count') echo none ;;
    'why -n') echo -d ;;
    'why -r') echo -f ;;
    'why -t') echo '-W seconds off' ;;
    'keys --sample') echo none ;;
    'keys --seconds') echo none ;;
    'keys -n') echo -d ;;
    'keys -r') echo -f ;;
    'keys -t') echo '-W seconds off' ;;
    'record -o'|'record --output') echo -f ;;
    'record --for') echo none ;;
    'record --requests') echo none ;;
    'record --client-sample') echo none ;;
    'record --sample') echo none ;;
    'record -q'|'record --query') echo none ;;
    'record --record-bytes') echo none ;;
    'record -n') echo -d ;;
    'record -r') echo -f ;;
    'record -t') echo '-W seconds off' ;;
    'replay --vcl') echo -f ;;
    'replay --against') echo -f ;;
    'replay --limit') echo none ;;
    'replay --cache-size') echo none ;;
    'replay -p') echo '-W accept_filter= acceptor_sleep_decay= acceptor_sleep_incr= acceptor_sleep_max= alt_svc_max_age= alt_svc_port= auto_restart= backend_close_notify= backend_dns_ttl= backend_error_reasons= backend_follow_dns= backend_idle_timeout= backend_local_error_holddown= backend_remote_error_holddown= backend_wait_limit= backend_wait_timeout= ban_any_variant= ban_cutoff= ban_dups= ban_lurker_age= ban_lurker_batch= ban_lurker_holdoff= ban_lurker_sleep= between_bytes_timeout= brotli_level= cache_control_targets= cache_status= cache_status_name= cc_command= cc_warnings= cli_limit= cli_timeout= client_half_close= clock_skew= clock_step= compress_after= compress_cpu= connect_timeout= critbit_cooloff= debug= default_grace= default_keep= default_ttl= drain_timeout= esi_fragments_max= esi_parallel= event_loops= eviction_policy= expect_continue_timeout= experimental= feature= fetch_chunksize= fetch_maxchunksize= first_byte_timeout= fleet_history= fleet_join_timeout= fleet_lost_after= fleet_lost_ttl= fleet_when_lost= gzip_buffer= gzip_level= gzip_memlevel= h2_extended_connect= h2_header_table_size= h2_initial_window_size= h2_max_concurrent_streams= h2_max_frame_size= h2_max_header_list_size= h2_rapid_reset= h2_rapid_reset_limit= h2_rapid_reset_period= h2_rx_window_increment= h2_rx_window_low_water= h2_rxbuf_storage= h2_window_timeout= http1_iovs= http_encodings= http_forwarded= http_gzip_support= http_max_hdr= http_policy= http_range_support= http_request_directives= http_req_hdr_len= http_req_size= http_resp_hdr_len= http_resp_size= idle_send_timeout= last_byte_timeout= leak_guard= listen_depth= lru_interval= max_esi_depth= max_restarts= max_retries= max_vcl= max_vcl_handling= no_vary_search= nuke_limit= partial_leniency= pcre2_depth_limit= pcre2_jit_compilation= pcre2_match_limit= ping_interval= pipe_sess_max= pipe_task_deadline= pipe_timeout= pool_req= pool_sess= pool_vbo= prefer_ipv6= request_memory_max= requests_memory_max= rush_exponent= send_timeout= shortlived= sigsegv_handler= slice_bytes= ssl_buffer= sslbuf_pool= storage_demote= storage_placement= storage_promote_bytes= storage_promote_hits= storage_small_bytes= store_set_cookie= syslog_cli_traffic= tcp_fastopen= tcp_keepalive_intvl= tcp_keepalive_probes= tcp_keepalive_time= thread_pool_add_delay= thread_pool_destroy_delay= thread_pool_fail_delay= thread_pool_max= thread_pool_min= thread_pool_reserve= thread_pool_stack= thread_pool_timeout= thread_pool_watchdog= thread_pools= thread_queue_limit= thread_stats_rate= timeout_idle= timeout_linger= tls_cleanup_batch= tls_handshake_timeout= tls_ja3= tls_err_dup_servername= tls_file_poll= transit_buffer= trusted_fronts= uncacheable_ttl= unknown_transfer_encoding= unsized_body_share= vary_language_order= trace_context= vary_language_select= vary_notice= vcc_allow_inline_c= vcc_err_unref= vcc_feature= vcc_unsafe_path= vcl_cooldown= vcl_path= vmod_path= vsl_buffer= vsl_mask= vsl_reasons= vsl_reclen= vsl_space= vsm_free_cooldown= waiting_requests_max= waiting_timeout= workspace_backend= workspace_client= workspace_session= workspace_thread= zstd_level=' ;;
    'replay -I') echo -d ;;
    'replay -b') echo none ;;
    'policy -s') echo none ;;
    'policy --format') echo '-W combined common vhost' ;;
    'policy --urls') echo none ;;
    'bench -c'|'bench --connections') echo none ;;
    'bench -t'|'bench --time') echo none ;;
    'bench -n'|'bench --requests') echo none ;;
    'bench -r'|'bench --rate') echo none ;;
    'bench --burst') echo none ;;
    'bench -k'|'bench --per-connection') echo none ;;
    'bench --idle') echo none ;;
    'bench --warm-up') echo none ;;
    'bench --timeout') echo none ;;
    'bench --threads') echo none ;;
    'bench --urls') echo -f ;;
    'bench --log') echo -f ;;
    'bench --format') echo '-W combined common vhost' ;;
    'bench --count') echo none ;;
    'bench --zipf') echo none ;;
    'bench --seed') echo none ;;
    'bench -X'|'bench --method') echo '-W GET HEAD OPTIONS PURGE' ;;
    'bench -H'|'bench --header') echo none ;;
    'bench --http') echo '-W 1 2 3' ;;
    'bench -m'|'bench --streams') echo none ;;
    'bench --expect-status') echo none ;;
    'bench --expect-bytes') echo none ;;
    'observe --metrics') echo none ;;
    'observe --access-log') echo none ;;
    'observe --otlp') echo none ;;
    'observe --otlp-sample') echo none ;;
    'observe --otlp-query') echo none ;;
    'observe -n') echo -d ;;
    'dash -n') echo -d ;;
    'dash --port') echo none ;;
    'init -b'|'init --backend') echo none ;;
    'init -H'|'init --host') echo none ;;
    'vcl check -p') echo '-W accept_filter= acceptor_sleep_decay= acceptor_sleep_incr= acceptor_sleep_max= alt_svc_max_age= alt_svc_port= auto_restart= backend_close_notify= backend_dns_ttl= backend_error_reasons= backend_follow_dns= backend_idle_timeout= backend_local_error_holddown= backend_remote_error_holddown= backend_wait_limit= backend_wait_timeout= ban_any_variant= ban_cutoff= ban_dups= ban_lurker_age= ban_lurker_batch= ban_lurker_holdoff= ban_lurker_sleep= between_bytes_timeout= brotli_level= cache_control_targets= cache_status= cache_status_name= cc_command= cc_warnings= cli_limit= cli_timeout= client_half_close= clock_skew= clock_step= compress_after= compress_cpu= connect_timeout= critbit_cooloff= debug= default_grace= default_keep= default_ttl= drain_timeout= esi_fragments_max= esi_parallel= event_loops= eviction_policy= expect_continue_timeout= experimental= feature= fetch_chunksize= fetch_maxchunksize= first_byte_timeout= fleet_history= fleet_join_timeout= fleet_lost_after= fleet_lost_ttl= fleet_when_lost= gzip_buffer= gzip_level= gzip_memlevel= h2_extended_connect= h2_header_table_size= h2_initial_window_size= h2_max_concurrent_streams= h2_max_frame_size= h2_max_header_list_size= h2_rapid_reset= h2_rapid_reset_limit= h2_rapid_reset_period= h2_rx_window_increment= h2_rx_window_low_water= h2_rxbuf_storage= h2_window_timeout= http1_iovs= http_encodings= http_forwarded= http_gzip_support= http_max_hdr= http_policy= http_range_support= http_request_directives= http_req_hdr_len= http_req_size= http_resp_hdr_len= http_resp_size= idle_send_timeout= last_byte_timeout= leak_guard= listen_depth= lru_interval= max_esi_depth= max_restarts= max_retries= max_vcl= max_vcl_handling= no_vary_search= nuke_limit= partial_leniency= pcre2_depth_limit= pcre2_jit_compilation= pcre2_match_limit= ping_interval= pipe_sess_max= pipe_task_deadline= pipe_timeout= pool_req= pool_sess= pool_vbo= prefer_ipv6= request_memory_max= requests_memory_max= rush_exponent= send_timeout= shortlived= sigsegv_handler= slice_bytes= ssl_buffer= sslbuf_pool= storage_demote= storage_placement= storage_promote_bytes= storage_promote_hits= storage_small_bytes= store_set_cookie= syslog_cli_traffic= tcp_fastopen= tcp_keepalive_intvl= tcp_keepalive_probes= tcp_keepalive_time= thread_pool_add_delay= thread_pool_destroy_delay= thread_pool_fail_delay= thread_pool_max= thread_pool_min= thread_pool_reserve= thread_pool_stack= thread_pool_timeout= thread_pool_watchdog= thread_pools= thread_queue_limit= thread_stats_rate= timeout_idle= timeout_linger= tls_cleanup_batch= tls_handshake_timeout= tls_ja3= tls_err_dup_servername= tls_file_poll= transit_buffer= trusted_fronts= uncacheable_ttl= unknown_transfer_encoding= unsized_body_share= vary_language_order= trace_context= vary_language_select= vary_notice= vcc_allow_inline_c= vcc_err_unref= vcc_feature= vcc_unsafe_path= vcl_cooldown= vcl_path= vmod_path= vsl_buffer= vsl_mask= vsl_reasons= vsl_reclen= vsl_space= vsm_free_cooldown= waiting_requests_max= waiting_timeout= workspace_backend= workspace_client= workspace_session= workspace_thread= zstd_level=' ;;
    'vcl check -I') echo -d ;;
    'vcl check --dialect') echo '-W auto 1 2.0 2.1 3.0 4' ;;
    'vcl check -b') echo none ;;
    'vcl check --label') echo none ;;
    'vcl check --storage') echo none ;;
    'vcl lint --deny') echo '-W note warning error' ;;
    'vcl lint -p') echo '-W accept_filter= acceptor_sleep_decay= acceptor_sleep_incr= acceptor_sleep_max= alt_svc_max_age= alt_svc_port= auto_restart= backend_close_notify= backend_dns_ttl= backend_error_reasons= backend_follow_dns= backend_idle_timeout= backend_local_error_holddown= backend_remote_error_holddown= backend_wait_limit= backend_wait_timeout= ban_any_variant= ban_cutoff= ban_dups= ban_lurker_age= ban_lurker_batch= ban_lurker_holdoff= ban_lurker_sleep= between_bytes_timeout= brotli_level= cache_control_targets= cache_status= cache_status_name= cc_command= cc_warnings= cli_limit= cli_timeout= client_half_close= clock_skew= clock_step= compress_after= compress_cpu= connect_timeout= critbit_cooloff= debug= default_grace= default_keep= default_ttl= drain_timeout= esi_fragments_max= esi_parallel= event_loops= eviction_policy= expect_continue_timeout= experimental= feature= fetch_chunksize= fetch_maxchunksize= first_byte_timeout= fleet_history= fleet_join_timeout= fleet_lost_after= fleet_lost_ttl= fleet_when_lost= gzip_buffer= gzip_level= gzip_memlevel= h2_extended_connect= h2_header_table_size= h2_initial_window_size= h2_max_concurrent_streams= h2_max_frame_size= h2_max_header_list_size= h2_rapid_reset= h2_rapid_reset_limit= h2_rapid_reset_period= h2_rx_window_increment= h2_rx_window_low_water= h2_rxbuf_storage= h2_window_timeout= http1_iovs= http_encodings= http_forwarded= http_gzip_support= http_max_hdr= http_policy= http_range_support= http_request_directives= http_req_hdr_len= http_req_size= http_resp_hdr_len= http_resp_size= idle_send_timeout= last_byte_timeout= leak_guard= listen_depth= lru_interval= max_esi_depth= max_restarts= max_retries= max_vcl= max_vcl_handling= no_vary_search= nuke_limit= partial_leniency= pcre2_depth_limit= pcre2_jit_compilation= pcre2_match_limit= ping_interval= pipe_sess_max= pipe_task_deadline= pipe_timeout= pool_req= pool_sess= pool_vbo= prefer_ipv6= request_memory_max= requests_memory_max= rush_exponent= send_timeout= shortlived= sigsegv_handler= slice_bytes= ssl_buffer= sslbuf_pool= storage_demote= storage_placement= storage_promote_bytes= storage_promote_hits= storage_small_bytes= store_set_cookie= syslog_cli_traffic= tcp_fastopen= tcp_keepalive_intvl= tcp_keepalive_probes= tcp_keepalive_time= thread_pool_add_delay= thread_pool_destroy_delay= thread_pool_fail_delay= thread_pool_max= thread_pool_min= thread_pool_reserve= thread_pool_stack= thread_pool_timeout= thread_pool_watchdog= thread_pools= thread_queue_limit= thread_stats_rate= timeout_idle= timeout_linger= tls_cleanup_batch= tls_handshake_timeout= tls_ja3= tls_err_dup_servername= tls_file_poll= transit_buffer= trusted_fronts= uncacheable_ttl= unknown_transfer_encoding= unsized_body_share= vary_language_order= trace_context= vary_language_select= vary_notice= vcc_allow_inline_c= vcc_err_unref= vcc_feature= vcc_unsafe_path= vcl_cooldown= vcl_path= vmod_path= vsl_buffer= vsl_mask= vsl_reasons= vsl_reclen= vsl_space= vsm_free_cooldown= waiting_requests_max= waiting_timeout= workspace_backend= workspace_client= workspace_session= workspace_thread= zstd_level=' ;;
    'vcl lint -I') echo -d ;;
    'vcl lint --dialect') echo '-W auto 1 2.0 2.1 3.0 4' ;;
    'vcl lint -b') echo none ;;
    'vcl lint --label') echo none ;;
    'vcl lint --storage') echo none ;;
    'vcl test --filter') echo none ;;
    'vcl test --junit') echo -f ;;
    'vcl test --coverage') echo '-W text lcov' ;;
    'vcl test --coverage-file') echo -f ;;
    'vcl test -p') echo '-W accept_filter= acceptor_sleep_decay= acceptor_sleep_incr= acceptor_sleep_max= alt_svc_max_age= alt_svc_port= auto_restart= backend_close_notify= backend_dns_ttl= backend_error_reasons= backend_follow_dns= backend_idle_timeout= backend_local_error_holddown= backend_remote_error_holddown= backend_wait_limit= backend_wait_timeout= ban_any_variant= ban_cutoff= ban_dups= ban_lurker_age= ban_lurker_batch= ban_lurker_holdoff= ban_lurker_sleep= between_bytes_timeout= brotli_level= cache_control_targets= cache_status= cache_status_name= cc_command= cc_warnings= cli_limit= cli_timeout= client_half_close= clock_skew= clock_step= compress_after= compress_cpu= connect_timeout= critbit_cooloff= debug= default_grace= default_keep= default_ttl= drain_timeout= esi_fragments_max= esi_parallel= event_loops= eviction_policy= expect_continue_timeout= experimental= feature= fetch_chunksize= fetch_maxchunksize= first_byte_timeout= fleet_history= fleet_join_timeout= fleet_lost_after= fleet_lost_ttl= fleet_when_lost= gzip_buffer= gzip_level= gzip_memlevel= h2_extended_connect= h2_header_table_size= h2_initial_window_size= h2_max_concurrent_streams= h2_max_frame_size= h2_max_header_list_size= h2_rapid_reset= h2_rapid_reset_limit= h2_rapid_reset_period= h2_rx_window_increment= h2_rx_window_low_water= h2_rxbuf_storage= h2_window_timeout= http1_iovs= http_encodings= http_forwarded= http_gzip_support= http_max_hdr= http_policy= http_range_support= http_request_directives= http_req_hdr_len= http_req_size= http_resp_hdr_len= http_resp_size= idle_send_timeout= last_byte_timeout= leak_guard= listen_depth= lru_interval= max_esi_depth= max_restarts= max_retries= max_vcl= max_vcl_handling= no_vary_search= nuke_limit= partial_leniency= pcre2_depth_limit= pcre2_jit_compilation= pcre2_match_limit= ping_interval= pipe_sess_max= pipe_task_deadline= pipe_timeout= pool_req= pool_sess= pool_vbo= prefer_ipv6= request_memory_max= requests_memory_max= rush_exponent= send_timeout= shortlived= sigsegv_handler= slice_bytes= ssl_buffer= sslbuf_pool= storage_demote= storage_placement= storage_promote_bytes= storage_promote_hits= storage_small_bytes= store_set_cookie= syslog_cli_traffic= tcp_fastopen= tcp_keepalive_intvl= tcp_keepalive_probes= tcp_keepalive_time= thread_pool_add_delay= thread_pool_destroy_delay= thread_pool_fail_delay= thread_pool_max= thread_pool_min= thread_pool_reserve= thread_pool_stack= thread_pool_timeout= thread_pool_watchdog= thread_pools= thread_queue_limit= thread_stats_rate= timeout_idle= timeout_linger= tls_cleanup_batch= tls_handshake_timeout= tls_ja3= tls_err_dup_servername= tls_file_poll= transit_buffer= trusted_fronts= uncacheable_ttl= unknown_transfer_encoding= unsized_body_share= vary_language_order= trace_context= vary_language_select= vary_notice= vcc_allow_inline_c= vcc_err_unref= vcc_feature= vcc_unsafe_path= vcl_cooldown= vcl_path= vmod_path= vsl_buffer= vsl_mask= vsl_reasons= vsl_reclen= vsl_space= vsm_free_cooldown= waiting_requests_max= waiting_timeout= workspace_backend= workspace_client= workspace_session= workspace_thread= zstd_level=' ;;
    'vcl test -I') echo -d ;;
    'vcl test -b') echo none ;;
    'vcl trace --request') echo -f ;;
    'vcl trace --url') echo none ;;
    'vcl trace -H'|'vcl trace --header') echo none ;;
    'vcl trace --origin') echo -f ;;
    'vcl trace -p') echo '-W accept_filter= acceptor_sleep_decay= acceptor_sleep_incr= acceptor_sleep_max= alt_svc_max_age= alt_svc_port= auto_restart= backend_close_notify= backend_dns_ttl= backend_error_reasons= backend_follow_dns= backend_idle_timeout= backend_local_error_holddown= backend_remote_error_holddown= backend_wait_limit= backend_wait_timeout= ban_any_variant= ban_cutoff= ban_dups= ban_lurker_age= ban_lurker_batch= ban_lurker_holdoff= ban_lurker_sleep= between_bytes_timeout= brotli_level= cache_control_targets= cache_status= cache_status_name= cc_command= cc_warnings= cli_limit= cli_timeout= client_half_close= clock_skew= clock_step= compress_after= compress_cpu= connect_timeout= critbit_cooloff= debug= default_grace= default_keep= default_ttl= drain_timeout= esi_fragments_max= esi_parallel= event_loops= eviction_policy= expect_continue_timeout= experimental= feature= fetch_chunksize= fetch_maxchunksize= first_byte_timeout= fleet_history= fleet_join_timeout= fleet_lost_after= fleet_lost_ttl= fleet_when_lost= gzip_buffer= gzip_level= gzip_memlevel= h2_extended_connect= h2_header_table_size= h2_initial_window_size= h2_max_concurrent_streams= h2_max_frame_size= h2_max_header_list_size= h2_rapid_reset= h2_rapid_reset_limit= h2_rapid_reset_period= h2_rx_window_increment= h2_rx_window_low_water= h2_rxbuf_storage= h2_window_timeout= http1_iovs= http_encodings= http_forwarded= http_gzip_support= http_max_hdr= http_policy= http_range_support= http_request_directives= http_req_hdr_len= http_req_size= http_resp_hdr_len= http_resp_size= idle_send_timeout= last_byte_timeout= leak_guard= listen_depth= lru_interval= max_esi_depth= max_restarts= max_retries= max_vcl= max_vcl_handling= no_vary_search= nuke_limit= partial_leniency= pcre2_depth_limit= pcre2_jit_compilation= pcre2_match_limit= ping_interval= pipe_sess_max= pipe_task_deadline= pipe_timeout= pool_req= pool_sess= pool_vbo= prefer_ipv6= request_memory_max= requests_memory_max= rush_exponent= send_timeout= shortlived= sigsegv_handler= slice_bytes= ssl_buffer= sslbuf_pool= storage_demote= storage_placement= storage_promote_bytes= storage_promote_hits= storage_small_bytes= store_set_cookie= syslog_cli_traffic= tcp_fastopen= tcp_keepalive_intvl= tcp_keepalive_probes= tcp_keepalive_time= thread_pool_add_delay= thread_pool_destroy_delay= thread_pool_fail_delay= thread_pool_max= thread_pool_min= thread_pool_reserve= thread_pool_stack= thread_pool_timeout= thread_pool_watchdog= thread_pools= thread_queue_limit= thread_stats_rate= timeout_idle= timeout_linger= tls_cleanup_batch= tls_handshake_timeout= tls_ja3= tls_err_dup_servername= tls_file_poll= transit_buffer= trusted_fronts= uncacheable_ttl= unknown_transfer_encoding= unsized_body_share= vary_language_order= trace_context= vary_language_select= vary_notice= vcc_allow_inline_c= vcc_err_unref= vcc_feature= vcc_unsafe_path= vcl_cooldown= vcl_path= vmod_path= vsl_buffer= vsl_mask= vsl_reasons= vsl_reclen= vsl_space= vsm_free_cooldown= waiting_requests_max= waiting_timeout= workspace_backend= workspace_client= workspace_session= workspace_thread= zstd_level=' ;;
    'vcl trace -I') echo -d ;;
    'vcl trace -b') echo none ;;
    'vcl migrate -o') echo -f ;;
    'vcl migrate -I') echo -d ;;
    'vcl migrate --dialect') echo '-W auto 1 2.0 2.1 3.0 4' ;;
    'vcl migrate --storage') echo none ;;
    'lsp -p') echo '-W accept_filter= acceptor_sleep_decay= acceptor_sleep_incr= acceptor_sleep_max= alt_svc_max_age= alt_svc_port= auto_restart= backend_close_notify= backend_dns_ttl= backend_error_reasons= backend_follow_dns= backend_idle_timeout= backend_local_error_holddown= backend_remote_error_holddown= backend_wait_limit= backend_wait_timeout= ban_any_variant= ban_cutoff= ban_dups= ban_lurker_age= ban_lurker_batch= ban_lurker_holdoff= ban_lurker_sleep= between_bytes_timeout= brotli_level= cache_control_targets= cache_status= cache_status_name= cc_command= cc_warnings= cli_limit= cli_timeout= client_half_close= clock_skew= clock_step= compress_after= compress_cpu= connect_timeout= critbit_cooloff= debug= default_grace= default_keep= default_ttl= drain_timeout= esi_fragments_max= esi_parallel= event_loops= eviction_policy= expect_continue_timeout= experimental= feature= fetch_chunksize= fetch_maxchunksize= first_byte_timeout= fleet_history= fleet_join_timeout= fleet_lost_after= fleet_lost_ttl= fleet_when_lost= gzip_buffer= gzip_level= gzip_memlevel= h2_extended_connect= h2_header_table_size= h2_initial_window_size= h2_max_concurrent_streams= h2_max_frame_size= h2_max_header_list_size= h2_rapid_reset= h2_rapid_reset_limit= h2_rapid_reset_period= h2_rx_window_increment= h2_rx_window_low_water= h2_rxbuf_storage= h2_window_timeout= http1_iovs= http_encodings= http_forwarded= http_gzip_support= http_max_hdr= http_policy= http_range_support= http_request_directives= http_req_hdr_len= http_req_size= http_resp_hdr_len= http_resp_size= idle_send_timeout= last_byte_timeout= leak_guard= listen_depth= lru_interval= max_esi_depth= max_restarts= max_retries= max_vcl= max_vcl_handling= no_vary_search= nuke_limit= partial_leniency= pcre2_depth_limit= pcre2_jit_compilation= pcre2_match_limit= ping_interval= pipe_sess_max= pipe_task_deadline= pipe_timeout= pool_req= pool_sess= pool_vbo= prefer_ipv6= request_memory_max= requests_memory_max= rush_exponent= send_timeout= shortlived= sigsegv_handler= slice_bytes= ssl_buffer= sslbuf_pool= storage_demote= storage_placement= storage_promote_bytes= storage_promote_hits= storage_small_bytes= store_set_cookie= syslog_cli_traffic= tcp_fastopen= tcp_keepalive_intvl= tcp_keepalive_probes= tcp_keepalive_time= thread_pool_add_delay= thread_pool_destroy_delay= thread_pool_fail_delay= thread_pool_max= thread_pool_min= thread_pool_reserve= thread_pool_stack= thread_pool_timeout= thread_pool_watchdog= thread_pools= thread_queue_limit= thread_stats_rate= timeout_idle= timeout_linger= tls_cleanup_batch= tls_handshake_timeout= tls_ja3= tls_err_dup_servername= tls_file_poll= transit_buffer= trusted_fronts= uncacheable_ttl= unknown_transfer_encoding= unsized_body_share= vary_language_order= trace_context= vary_language_select= vary_notice= vcc_allow_inline_c= vcc_err_unref= vcc_feature= vcc_unsafe_path= vcl_cooldown= vcl_path= vmod_path= vsl_buffer= vsl_mask= vsl_reasons= vsl_reclen= vsl_space= vsm_free_cooldown= waiting_requests_max= waiting_timeout= workspace_backend= workspace_client= workspace_session= workspace_thread= zstd_level=' ;;
    'lsp -I') echo -d ;;
    'lsp --dialect') echo '-W auto 1 2.0 2.1 3.0 4' ;;
    'lsp -b') echo none ;;
    'lsp --label') echo none ;;
    'lsp --storage') echo none ;;
    'preflight --unit') echo -f ;;
    'preflight --environment') echo -f ;;
    'preflight --pid') echo none ;;
    'preflight --vcl') echo -f ;;
    'preflight --params') echo -f ;;
    'preflight --hitch') echo -f ;;
    'preflight --ncsa') echo -f ;;
    'preflight --root') echo -d ;;
    'upgrade -n') echo -d ;;
    'test -b') echo none ;;
    'test -D') echo none ;;
    'test -j') echo none ;;
    'test -n') echo none ;;
    'test -p') echo none ;;
    'test -t') echo none ;;
    *) return 1 ;;
    esac
}

_copal_operand() {
    case $1 in
    'demo') echo none ;;
    'daemon') echo none ;;
    'status') echo none ;;
    'stop') echo none ;;
    'adm') echo '-W acme.list acme.renew auth backend.list backend.set_health ban ban.list banner dash.login fleet.ban fleet.drain fleet.forget fleet.leave fleet.list fleet.purge fleet.status help panic.clear panic.show param.reset param.set param.show pid ping quit start status stop storage.list tag.count tag.purge tag.softpurge tls.cert.commit tls.cert.discard tls.cert.list tls.cert.load tls.cert.reload tls.cert.rollback upgrade vcl.canary vcl.deps vcl.discard vcl.history vcl.inline vcl.label vcl.list vcl.load vcl.promote vcl.rollback vcl.show vcl.state vcl.use' ;;
    'log') echo none ;;
    'ncsa') echo none ;;
    'stat') echo none ;;
    'top') echo none ;;
    'hist') echo none ;;
    'why') echo none ;;
    'keys') echo none ;;
    'record') echo none ;;
    'replay') echo none ;;
    'policy') echo -f ;;
    'bench') echo none ;;
    'observe') echo none ;;
    'dash') echo none ;;
    'init') echo none ;;
    'vcl') echo '-W check lint test trace fmt migrate explain' ;;
    'vcl check') echo -f ;;
    'vcl lint') echo -f ;;
    'vcl test') echo none ;;
    'vcl trace') echo none ;;
    'vcl fmt') echo -f ;;
    'vcl migrate') echo -f ;;
    'vcl explain') echo none ;;
    'lsp') echo none ;;
    'preflight') echo none ;;
    'upgrade') echo none ;;
    'test') echo -f ;;
    esac
}

_copal() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    local first=1 part kind
    COMPREPLY=()
    case ${COMP_WORDS[0]##*/} in
    varnishd) part=daemon ;;
    varnishadm) part=adm ;;
    varnishlog) part=log ;;
    varnishncsa) part=ncsa ;;
    varnishstat) part=stat ;;
    varnishtop) part=top ;;
    varnishhist) part=hist ;;
    varnishtest) part=test ;;
    *)
        if ((COMP_CWORD == 1)) || [[ $COMP_CWORD == 2 && ${COMP_WORDS[1]} == help ]]; then
            mapfile -t COMPREPLY < <(compgen -W 'demo daemon status stop adm log ncsa stat top hist why keys record replay policy bench observe dash init vcl lsp preflight upgrade test help --help --version' -- "$current")
            return
        fi
        part=${COMP_WORDS[1]} first=2
        if ((COMP_CWORD > 2)) && [[ -n $(_copal_options "$part ${COMP_WORDS[2]}") ]]; then
            part+=" ${COMP_WORDS[2]}"
        fi
        ;;
    esac
    if ((COMP_CWORD > first)) && kind=$(_copal_value "$part" "$before"); then
        :
    elif [[ $current == -* ]]; then
        kind="-W $(_copal_options "$part")"
    else
        kind=$(_copal_operand "$part")
    fi
    case $kind in
    -W*) mapfile -t COMPREPLY < <(compgen -W "${kind#-W }" -- "$current") ;;
    -?) mapfile -t COMPREPLY < <(compgen "$kind" -- "$current") ;;
    esac
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}

complete -o filenames -F _copal copal varnishd varnishadm varnishlog varnishncsa varnishstat varnishtop varnishhist varnishtest
